//! Transactions: assembled from the operations of records, and passed on when they are committed.

use super::record::Header;
use crate::corruption::Corruption;
use crate::disk::log::{ItemHead, TransHeader};
use crate::disk::{OpHeader, XFS_TRANS_HEADER_MAGIC};
use packfs_core::{Error, Result, usize_of};
use packfs_format::{OnDisk, split_structure, structure, units::*};
use std::collections::HashMap;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

const HEADER_LEN: usize = size_of::<TransHeader>();
/// Flags of an operation (`XLOG_*_TRANS`).
const START: u8 = 1;
const COMMIT: u8 = 2;
const CONTINUES: u8 = 4;
const WAS_CONTINUED: u8 = 8;
const END: u8 = 16;
const UNMOUNT: u8 = 32;
/// Values of `oh_clientid`: transactions, and the log itself.
const CLIENTS: [u8; 2] = [0x69, 0xaa];
const REGIONS_MAX: usize = 257;
/// Approximate overhead of a region, an item, and a transaction, in bytes.
const OVERHEAD: u64 = 96;
/// Limit of the bytes of open transactions. Linux bounds them at 64 MiB.
const OPEN_BYTES_MAX: u64 = 512 << 20;

/// Change of one object; the first region describes it.
#[derive(Debug, Default)]
pub(super) struct Item {
    pub(super) regions: Vec<Vec<u8>>,
    /// Declared number of regions.
    total: usize,
}

impl Item {
    /// Returns the bytes of a region; empty if it is missing.
    pub(super) fn region(&self, index: usize) -> &[u8] {
        self.regions.get(index).map_or(&[], Vec::as_slice)
    }

    pub(super) fn head<T: OnDisk + FromBytes + KnownLayout + Immutable + Unaligned>(
        &self,
        what: &'static str,
    ) -> Result<T, Corruption> {
        structure(self.region(0), 0).ok_or(Corruption::LogItem { what, number: 0, fault: "cut off" })
    }

    pub(super) fn kind(&self) -> Result<u16, Corruption> {
        Ok(self.head::<ItemHead>("item")?.item_type.get())
    }
}

#[derive(Default)]
struct Open {
    lsn: u64,
    header: Vec<u8>,
    items: Vec<Item>,
    held: u64,
}

#[derive(Default)]
pub(super) struct Assembly {
    open: HashMap<u32, Open>,
    held: u64,
}

/// Arguments: LSN of the first record of a committed transaction, and its items.
pub(super) type Commit<'a> = dyn FnMut(u64, Vec<Item>) -> Result<()> + 'a;

impl Assembly {
    pub(super) fn add(&mut self, header: &Header, data: &[u8], commit: &mut Commit<'_>) -> Result<()> {
        let fault = |fault| Corruption::log_record(header.sector, fault);
        let mut rest = data.within(..usize_of(header.len));
        for _ in 0..header.operations {
            if rest.is_empty() {
                break;
            }
            let Some((operation, behind)) = split_structure::<OpHeader>(rest) else {
                return Err(fault("an operation is cut off").into());
            };
            let len = usize_of(operation.oh_len.get().into());
            let Some((bytes, behind)) = behind.split_at_checked(len) else {
                return Err(fault("an operation is longer than the record").into());
            };
            if !CLIENTS.contains(&operation.oh_clientid) {
                return Err(fault("an operation of an unknown writer").into());
            }
            rest = behind;
            self.operation(operation.oh_tid.get(), operation.oh_flags, bytes, header, commit)?;
        }
        Ok(())
    }

    fn operation(
        &mut self,
        id: u32,
        flags: u8,
        bytes: &[u8],
        header: &Header,
        commit: &mut Commit<'_>,
    ) -> Result<()> {
        let Some(open) = self.open.get_mut(&id) else {
            // Operations of transactions that started before the tail are skipped.
            if flags & START != 0 {
                self.open.insert(id, Open { lsn: header.lsn, ..Open::default() });
                self.hold(id, OVERHEAD)?;
            }
            return Ok(());
        };
        let mut flags = flags & !END;
        if flags & WAS_CONTINUED != 0 {
            flags &= !CONTINUES;
        }
        let added = match flags {
            0 | CONTINUES => open.add(bytes),
            WAS_CONTINUED => open.go_on(bytes),
            COMMIT | UNMOUNT => {
                let done = self.open.remove(&id).unwrap_or_default();
                self.held = self.held.minus(done.held);
                return if flags == COMMIT { commit(done.lsn, done.items) } else { Ok(()) };
            }
            _ => Err("an operation with unknown flags"),
        };
        let added = added.map_err(|fault| Corruption::log_record(header.sector, fault))?;
        self.hold(id, added)
    }

    fn hold(&mut self, id: u32, bytes: u64) -> Result<()> {
        if let Some(open) = self.open.get_mut(&id) {
            open.held = open.held.plus(bytes);
        }
        self.held = self.held.plus(bytes);
        if self.held <= OPEN_BYTES_MAX {
            Ok(())
        } else {
            let fault = format!("log: open transactions of over {OPEN_BYTES_MAX} bytes");
            Err(Error::limit("xfs image", fault).hint(crate::corruption::READ_WITHOUT))
        }
    }
}

impl Open {
    /// Adds a region, or the first part of one. Returns the bytes to charge.
    fn add(&mut self, bytes: &[u8]) -> Result<u64, &'static str> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.header.len() < HEADER_LEN {
            if self.header.is_empty() && !bytes.starts_with(&XFS_TRANS_HEADER_MAGIC.to_le_bytes()) {
                return Err("a transaction without its magic number");
            }
            return self.add_header(bytes);
        }
        if self.items.last().is_none_or(|item| item.regions.len() >= item.total) {
            let total = structure(bytes, 0).map_or(0, |head: ItemHead| head.item_size.get().into());
            if !(1..=REGIONS_MAX).contains(&total) {
                return Err("an item with an unknown number of regions");
            }
            self.items.push(Item { regions: Vec::new(), total });
        }
        if let Some(item) = self.items.last_mut() {
            item.regions.push(bytes.to_vec());
        }
        Ok(OVERHEAD.plus(bytes.len() as u64))
    }

    /// Appends to the last region. Returns the bytes to charge.
    fn go_on(&mut self, bytes: &[u8]) -> Result<u64, &'static str> {
        if self.header.len() < HEADER_LEN {
            return self.add_header(bytes);
        }
        let Some(region) = self.items.last_mut().and_then(|item| item.regions.last_mut()) else {
            return Err("a part of a region without its start");
        };
        region.extend_from_slice(bytes);
        Ok(bytes.len() as u64)
    }

    fn add_header(&mut self, bytes: &[u8]) -> Result<u64, &'static str> {
        if part(bytes, 0, HEADER_LEN.minus(self.header.len())).unwrap_or(bytes).len() < bytes.len() {
            return Err("a transaction with a long header");
        }
        self.header.extend_from_slice(bytes);
        Ok(0)
    }
}

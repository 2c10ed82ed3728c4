//! Transactions: put together from the operations of records, and handed out once committed.

use super::record::Header;
use crate::corruption::Corruption;
use crate::disk::{be32, byte, le16, le32, part};
use packfs_core::{Error, Result, usize_of};
use std::collections::HashMap;

/// Bytes of the header of an operation, and of a transaction.
const OPERATION_LEN: usize = 12;
const HEADER_LEN: usize = 16;
/// First bytes of a transaction.
const MAGIC: u32 = 0x5452_414e;
/// Flags of an operation.
const START: u8 = 1;
const COMMIT: u8 = 2;
const CONTINUES: u8 = 4;
const WAS_CONTINUED: u8 = 8;
const END: u8 = 16;
const UNMOUNT: u8 = 32;
/// Writers of operations: transactions and the log itself.
const CLIENTS: [u8; 2] = [0x69, 0xaa];
/// Most regions of an item.
const REGIONS_MAX: usize = 257;
/// Bytes that a region, an item, and a transaction take beside their contents, about.
const OVERHEAD: u64 = 96;
/// Most bytes of transactions that were not committed yet. Linux holds back further ones at 64 MiB.
const OPEN_BYTES_MAX: u64 = 512 << 20;

/// Change of one thing: its first region tells what.
#[derive(Debug, Default)]
pub(super) struct Item {
    pub(super) regions: Vec<Vec<u8>>,
    /// Regions that it will have.
    total: usize,
}

impl Item {
    /// Returns the bytes of a region; none if it is missing.
    pub(super) fn region(&self, index: usize) -> &[u8] {
        self.regions.get(index).map_or(&[], Vec::as_slice)
    }

    /// Returns the type of the item.
    pub(super) fn kind(&self) -> u16 {
        le16(self.region(0), 0)
    }
}

/// Transaction that was not committed yet.
#[derive(Default)]
struct Open {
    /// Number of the record that it begins in.
    lsn: u64,
    header: Vec<u8>,
    items: Vec<Item>,
    held: u64,
}

/// Operations so far.
#[derive(Default)]
pub(super) struct Assembly {
    open: HashMap<u32, Open>,
    held: u64,
}

/// Takes the items of a committed transaction, and the number of its first record.
pub(super) type Commit<'a> = dyn FnMut(u64, Vec<Item>) -> Result<()> + 'a;

impl Assembly {
    /// Takes the operations of a record.
    pub(super) fn add(&mut self, header: &Header, data: &[u8], commit: &mut Commit<'_>) -> Result<()> {
        let fault = |fault| Corruption::LogRecord { sector: header.sector, fault };
        let mut rest = data.get(..usize_of(header.len)).unwrap_or_default();
        for _ in 0..header.operations {
            if rest.is_empty() {
                break;
            }
            let Some((operation, behind)) = rest.split_at_checked(OPERATION_LEN) else {
                return Err(fault("an operation is cut off").into());
            };
            let len = usize_of(be32(operation, 4).into());
            let Some((bytes, behind)) = behind.split_at_checked(len) else {
                return Err(fault("an operation is longer than the record").into());
            };
            if !CLIENTS.contains(&byte(operation, 8)) {
                return Err(fault("an operation of an unknown writer").into());
            }
            rest = behind;
            let (id, flags) = (be32(operation, 0), byte(operation, 9));
            self.operation(id, flags, bytes, header, commit)?;
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
            // Operations of transactions that began before the tail are passed over.
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
                self.held = self.held.saturating_sub(done.held);
                return if flags == COMMIT { commit(done.lsn, done.items) } else { Ok(()) };
            }
            _ => Err("an operation with unknown flags"),
        };
        let added = added.map_err(|fault| Corruption::LogRecord { sector: header.sector, fault })?;
        self.hold(id, added)
    }

    /// Counts bytes of an open transaction.
    fn hold(&mut self, id: u32, bytes: u64) -> Result<()> {
        if let Some(open) = self.open.get_mut(&id) {
            open.held = open.held.saturating_add(bytes);
        }
        self.held = self.held.saturating_add(bytes);
        match self.held <= OPEN_BYTES_MAX {
            true => Ok(()),
            false => {
                let fault = format!("log: open transactions of over {OPEN_BYTES_MAX} bytes");
                Err(Error::limit("xfs image", fault).hint(crate::corruption::READ_WITHOUT))
            }
        }
    }
}

impl Open {
    /// Takes a region, or the first part of one. Returns the bytes that it takes.
    fn add(&mut self, bytes: &[u8]) -> Result<u64, &'static str> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.header.len() < HEADER_LEN {
            if self.header.is_empty() && le32(bytes, 0) != MAGIC {
                return Err("a transaction without its magic number");
            }
            return self.add_header(bytes);
        }
        if self.items.last().is_none_or(|item| item.regions.len() >= item.total) {
            let total = usize::from(le16(bytes, 2));
            if !(1..=REGIONS_MAX).contains(&total) || bytes.len() < 4 {
                return Err("an item with an unknown number of regions");
            }
            self.items.push(Item { regions: Vec::new(), total });
        }
        if let Some(item) = self.items.last_mut() {
            item.regions.push(bytes.to_vec());
        }
        Ok(OVERHEAD.saturating_add(bytes.len() as u64))
    }

    /// Takes a further part of the last region.
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
        if part(bytes, 0, HEADER_LEN.saturating_sub(self.header.len())).unwrap_or(bytes).len() < bytes.len() {
            return Err("a transaction with a long header");
        }
        self.header.extend_from_slice(bytes);
        Ok(0)
    }
}

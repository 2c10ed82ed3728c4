//! State of a replay.

use super::format::{CANCEL, Changed, Format};
use super::intent::Intents;
use super::notes::Notes;
use super::target::Target;
use super::transaction::Item;
use crate::disk::{Checksum, Dinode, put};
use packfs_core::{Image, Result};
use packfs_format::{structure, units::*};
use std::collections::{BTreeMap, HashMap};
use std::mem::offset_of;

pub(super) const BUFFER: u16 = 0x123c;

/// Blocks that are freed later in the log: earlier changes to them are skipped.
#[derive(Default)]
pub(super) struct Cancelled(HashMap<(u64, u16), u32>);

impl Cancelled {
    /// Counts a block that a transaction frees.
    pub(super) fn note(&mut self, item: &Item) -> Result<()> {
        if item.kind()? == BUFFER {
            let format = Format::parse(item)?;
            if format.flags & CANCEL != 0 {
                let count = self.0.entry((format.first, format.sectors)).or_default();
                *count = count.plus(1);
            }
        }
        Ok(())
    }

    pub(super) fn has(&self, key: (u64, u16)) -> bool {
        self.0.contains_key(&key)
    }

    /// Passes one release of a block; false for one that was not counted.
    pub(super) fn put(&mut self, key: (u64, u16)) -> bool {
        let Some(count) = self.0.get_mut(&key) else { return false };
        *count = count.minus(1);
        if *count == 0 {
            self.0.remove(&key);
        }
        true
    }
}

pub(super) struct Replay<'a> {
    pub(super) target: Target<'a>,
    pub(super) cancelled: Cancelled,
    /// Blocks that need new checksums, by first sector.
    pub(super) changed: BTreeMap<u64, Changed>,
    pub(super) notes: Notes,
    pub(super) intents: Intents,
    pub(super) transactions: u64,
}

impl Replay<'_> {
    pub(super) fn target_len(&self) -> u64 {
        self.target.overlay.len()
    }

    pub(super) fn write_inode(&mut self, at: u64, mut inode: Vec<u8>) -> Result<()> {
        if structure(&inode, 0).is_some_and(|raw: Dinode| raw.di_version >= 3) {
            let sum = Checksum::of(&inode, offset_of!(Dinode, di_crc)).computed;
            put(&mut inode, offset_of!(Dinode, di_crc), &sum.to_le_bytes());
        }
        self.target.write(at, &inode)
    }
}

//! State while changes are applied.

use super::format::{CANCEL, Changed, Format, put};
use super::intent::Intents;
use super::notes::Notes;
use super::target::Target;
use super::transaction::Item;
use crate::disk::{Checksum, byte};
use crate::inode::CHECKSUM_AT;
use packfs_core::{Image, Result};
use std::collections::{BTreeMap, HashMap};

/// Type of items that change blocks.
pub(super) const BUFFER: u16 = 0x123c;

/// Blocks that are freed later in the log: their changes are left out up to there.
#[derive(Default)]
pub(super) struct Cancelled(HashMap<(u64, u16), u32>);

impl Cancelled {
    /// Counts a block that a transaction frees.
    pub(super) fn note(&mut self, item: &Item) -> Result<()> {
        if item.kind() == BUFFER {
            let format = Format::parse(item)?;
            if format.flags & CANCEL != 0 {
                let count = self.0.entry((format.first, format.sectors)).or_default();
                *count = count.saturating_add(1);
            }
        }
        Ok(())
    }

    /// Returns true if a block is freed later.
    pub(super) fn has(&self, key: (u64, u16)) -> bool {
        self.0.contains_key(&key)
    }

    /// Passes one release of a block. Returns false for one that was not counted.
    pub(super) fn put(&mut self, key: (u64, u16)) -> bool {
        let Some(count) = self.0.get_mut(&key) else { return false };
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.0.remove(&key);
        }
        true
    }
}

/// State while changes are applied.
pub(super) struct Replay<'a> {
    pub(super) target: Target<'a>,
    pub(super) cancelled: Cancelled,
    /// Blocks whose checksums have to be computed, by their first sector.
    pub(super) changed: BTreeMap<u64, Changed>,
    pub(super) notes: Notes,
    pub(super) intents: Intents,
    pub(super) transactions: u64,
}

impl Replay<'_> {
    /// Returns the bytes of the image.
    pub(super) fn target_len(&self) -> u64 {
        self.target.overlay.len()
    }

    /// Writes an inode, its checksum put right.
    pub(super) fn write_inode(&mut self, at: u64, mut inode: Vec<u8>) -> Result<()> {
        if byte(&inode, 4) >= 3 {
            let sum = Checksum::of(&inode, CHECKSUM_AT).computed;
            put(&mut inode, CHECKSUM_AT, &sum.to_le_bytes());
        }
        self.target.write(at, &inode)
    }
}

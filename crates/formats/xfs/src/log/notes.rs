//! Results of a replay that affect later reads.

use crate::super_block::SuperBlock;
use packfs_format::units::*;
use std::collections::HashSet;

/// Structures with fields that a replay cannot correct.
#[derive(Default)]
pub(crate) struct Notes {
    /// Offsets of blocks that are parts of directory blocks: their checksum covers other blocks,
    /// too.
    parts: HashSet<u64>,
    /// Inodes whose extent trees belonged to another one before.
    pub(crate) new_owners: HashSet<u64>,
}

impl Notes {
    pub(super) fn add_part(&mut self, super_block: &SuperBlock, at: u64, len: u64) {
        let mut done = 0_u64;
        while done < len {
            self.parts.insert(at.plus(done));
            done = done.plus(super_block.block_len);
        }
    }

    pub(crate) fn has_part(&self, at: u64) -> bool {
        self.parts.contains(&at)
    }
}

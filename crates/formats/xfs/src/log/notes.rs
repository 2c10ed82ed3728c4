//! Facts that a replay leaves for reading.

use crate::super_block::SuperBlock;
use std::collections::HashSet;

/// Structures whose stored figures a replay cannot put right.
#[derive(Default)]
pub(crate) struct Notes {
    /// Offsets of blocks that are parts of directory blocks: checksums cover other blocks, too.
    parts: HashSet<u64>,
    /// Inodes whose trees of extents belonged to another one before.
    pub(crate) new_owners: HashSet<u64>,
}

impl Notes {
    /// Notes the blocks of a changed part of a directory block.
    pub(super) fn add_part(&mut self, super_block: &SuperBlock, at: u64, len: u64) {
        let mut done = 0_u64;
        while done < len {
            self.parts.insert(at.saturating_add(done));
            done = done.saturating_add(super_block.block_len);
        }
    }

    /// Returns true if the block at an offset is such a part.
    pub(crate) fn has_part(&self, at: u64) -> bool {
        self.parts.contains(&at)
    }
}

//! Blocks that are in use, by group.

use crate::features::SHARED_BLOCKS;
use crate::reader::Reader;
use packfs_core::{range_at, usize_of};
use std::collections::HashMap;

/// Blocks that a part of the bits stands for.
const PART_LEN: u64 = 1 << 15;

/// Bits of blocks; parts without a block in use have none.
pub(super) struct BlockUse {
    parts: HashMap<u64, Box<[u64]>>,
    /// End of the blocks that the image has; what lies behind is not kept.
    end: u64,
    /// Set if files may share blocks.
    is_shared: bool,
}

/// Blocks that were claimed before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Again {
    pub(super) count: u64,
    pub(super) first: Option<u64>,
}

impl BlockUse {
    pub(super) fn new(reader: &Reader) -> BlockUse {
        let super_block = &reader.super_block;
        let end = reader.image.len().div_ceil(super_block.block_len).min(super_block.block_count);
        let is_shared = super_block.features.forbids(SHARED_BLOCKS);
        BlockUse { parts: HashMap::new(), end, is_shared }
    }

    /// Marks blocks; returns those that were marked.
    pub(super) fn claim(&mut self, block: u64, count: u64) -> Again {
        let mut again = Again::default();
        let range = range_at(block, count);
        for block in range.start..range.end.min(self.end) {
            let part = self.parts.entry(block / PART_LEN);
            let words = part.or_insert_with(|| vec![0; usize_of(PART_LEN / 64)].into_boxed_slice());
            let Some(word) = words.get_mut(usize_of(block % PART_LEN / 64)) else { continue };
            let bit = bit_of(block);
            if *word & bit != 0 && !self.is_shared {
                again.count = again.count.saturating_add(1);
                again.first.get_or_insert(block);
            }
            *word |= bit;
        }
        again
    }

    /// Returns true if a block is marked.
    pub(super) fn is_used(&self, block: u64) -> bool {
        let words = self.parts.get(&(block / PART_LEN));
        let word = words.and_then(|words| words.get(usize_of(block % PART_LEN / 64)));
        word.is_some_and(|word| word & bit_of(block) != 0)
    }

    /// Returns true if blocks that begin with one may be marked: false only for parts without any.
    pub(super) fn may_be_used(&self, block: u64) -> bool {
        self.parts.contains_key(&(block / PART_LEN))
    }
}

fn bit_of(block: u64) -> u64 {
    1_u64.wrapping_shl(packfs_core::u32_of(block % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_claimed_once() {
        let mut used = BlockUse { parts: HashMap::new(), end: 100_000, is_shared: false };
        assert_eq!(used.claim(32_760, 20), Again::default());
        assert_eq!(used.claim(32_770, 20), Again { count: 10, first: Some(32_770) });
        assert!(used.is_used(32_789) && !used.is_used(32_790) && !used.is_used(90_000));
        assert_eq!(used.claim(99_999, u64::MAX), Again::default());
        assert!(!used.may_be_used(100_000 + PART_LEN) && used.may_be_used(0));
    }
}

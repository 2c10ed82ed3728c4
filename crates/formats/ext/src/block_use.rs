//! Blocks that are in use.

use crate::features::SHARED_BLOCKS;
use crate::reader::Reader;
use packfs_core::{range_at, usize_of};
use packfs_format::units::*;
use std::collections::HashMap;
use std::ops::Range;

/// Words of a part of the bitmap, which is allocated when a block in it is claimed.
const PART_WORDS: u64 = 64;
/// Times that all blocks may be claimed before further claims are ignored.
const CLAIMS_MAX: u64 = 64;

pub(crate) struct BlockUse {
    parts: HashMap<u64, Box<[u64]>>,
    /// End of the image in blocks; later blocks are not recorded.
    end: u64,
    /// Remaining budget of claims: an image may claim each of its blocks very often.
    left: u64,
    pub(crate) is_shared: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Again {
    pub(crate) count: u64,
    pub(crate) first: Option<u64>,
}

impl BlockUse {
    pub(crate) fn new(reader: &Reader) -> BlockUse {
        let super_block = &reader.super_block;
        let end = reader.image.len().div_ceil(super_block.block_len).min(super_block.block_count);
        BlockUse::with_end(end, super_block.features.forbids(SHARED_BLOCKS))
    }

    fn with_end(end: u64, is_shared: bool) -> BlockUse {
        BlockUse { parts: HashMap::new(), end, left: end.times(CLAIMS_MAX), is_shared }
    }

    /// Marks blocks; returns those that were already marked.
    pub(crate) fn claim(&mut self, block: u64, count: u64) -> Again {
        let range = range_at(block, count);
        let range = range.start..range.end.min(self.end);
        let mut again = Again::default();
        match self.left.checked_sub(packfs_core::len_of(&range)) {
            Some(left) => self.left = left,
            // The budget is spent: all blocks are marked many times over.
            None => {
                self.left = 0;
                return Again { count, first: Some(block) };
            }
        }
        for (word, mask) in words_of(range) {
            let part = self.parts.entry(word / PART_WORDS);
            let words = part.or_insert_with(|| vec![0; usize_of(PART_WORDS)].into_boxed_slice());
            let Some(bits) = words.get_mut(usize_of(word % PART_WORDS)) else { continue };
            let both = *bits & mask;
            if both != 0 {
                again.count = again.count.plus(u64::from(both.count_ones()));
                let first = word.times(64).plus(u64::from(both.trailing_zeros()));
                again.first.get_or_insert(first);
            }
            *bits |= mask;
        }
        again
    }

    /// True if claims were ignored because the budget was spent.
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0 && self.end > 0
    }

    pub(crate) fn is_any_used(&self, range: Range<u64>) -> bool {
        let mut words = words_of(range).peekable();
        while let Some((word, mask)) = words.next() {
            let part = word / PART_WORDS;
            match self.parts.get(&part) {
                Some(bits) if bits.get(usize_of(word % PART_WORDS)).is_some_and(|bits| bits & mask != 0) => {
                    return true;
                }
                Some(_) => {}
                // No block of the part is marked.
                None => while words.next_if(|(word, _)| word / PART_WORDS == part).is_some() {},
            }
        }
        false
    }
}

fn words_of(range: Range<u64>) -> impl Iterator<Item = (u64, u64)> {
    let last = if range.is_empty() { 0 } else { range.end.div_ceil(64) };
    (range.start / 64..last).map(move |word| {
        let first = word.times(64);
        let skip = packfs_core::u32_of(left(range.start, first));
        let beyond = packfs_core::u32_of(left(first.plus(64), range.end).min(63));
        (word, (!0_u64).wrapping_shl(skip) & (!0_u64).wrapping_shr(beyond))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_claimed_once() {
        let mut used = BlockUse::with_end(100_000, false);
        assert_eq!(used.claim(32_760, 20), Again::default());
        assert_eq!(used.claim(32_770, 20), Again { count: 10, first: Some(32_770) });
        assert!(used.is_any_used(32_789..32_790) && !used.is_any_used(32_790..90_000));
        assert!(used.is_any_used(0..100_000) && !used.is_any_used(0..32_760) && !used.is_any_used(5..5));
        assert_eq!(used.claim(99_999, u64::MAX), Again::default());
        assert_eq!(used.claim(99_999, 1), Again { count: 1, first: Some(99_999) });
    }

    #[test]
    fn words_agree_with_single_blocks() {
        let mut used = BlockUse::with_end(1000, false);
        let mut wanted = vec![false; 1000];
        let mut random = packfs_testkit::Random::new(3);
        for _ in 0..200 {
            let start = random.below(1000);
            let range = start..(start + random.below(150)).min(1000);
            let before: Vec<u64> = range.clone().filter(|block| wanted[*block as usize]).collect();
            assert_eq!(used.is_any_used(range.clone()), !before.is_empty(), "{range:?}");
            let again = used.claim(range.start, range.end - range.start);
            assert_eq!(again, Again { count: before.len() as u64, first: before.first().copied() });
            range.for_each(|block| wanted[block as usize] = true);
        }
    }

    #[test]
    fn claims_have_an_end() {
        let mut used = BlockUse::with_end(1 << 20, false);
        for _ in 0..100_000 {
            used.claim(0, 1 << 20);
        }
        assert!(used.is_over());
    }
}

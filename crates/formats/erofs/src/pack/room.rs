//! Placement of inodes and metadata blocks in sequence, with small ones in the gaps of alignment.
//!
//! Inodes start at multiples of 32 bytes, blocks at multiples of the block, and inline data must
//! not cross a block. Only gaps near the end are reused, so that related metadata stays together.

use std::collections::VecDeque;
use std::ops::Range;

pub(super) const SLOT_LEN: u64 = 32;
const GAP_COUNT_MAX: usize = 16;

/// A growing area; offsets are from its start, which is aligned to blocks.
#[derive(Debug)]
pub(super) struct Room {
    block_len: u64,
    end: u64,
    gaps: VecDeque<Range<u64>>,
}

impl Room {
    /// The first `taken` bytes are in use. No inode is placed at 0, which readers take for none.
    pub(super) fn new(block_len: u64, taken: u64) -> Self {
        Room { block_len, end: taken.max(SLOT_LEN).next_multiple_of(SLOT_LEN), gaps: VecDeque::new() }
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Places an inode: its first `head_len` bytes anywhere, and the next `inline_len` bytes within
    /// one block.
    ///
    /// The caller has checked with [`fits`] that this is possible.
    pub(super) fn place_inode(&mut self, head_len: u64, inline_len: u64) -> u64 {
        let len = head_len + inline_len;
        for index in 0..self.gaps.len() {
            let gap = self.gaps[index].clone();
            let at = self.aligned(gap.start, head_len, inline_len);
            if at + len <= gap.end {
                self.gaps.remove(index);
                self.remember(gap.start..at);
                self.remember(at + len..gap.end);
                return at;
            }
        }
        let at = self.aligned(self.end, head_len, inline_len);
        self.remember(self.end..at);
        self.end = at + len;
        at
    }

    pub(super) fn place_blocks(&mut self, count: u64) -> u64 {
        let at = self.end.next_multiple_of(self.block_len);
        self.remember(self.end..at);
        self.end = at + count * self.block_len;
        at
    }

    /// Returns the first valid offset from `from` on.
    fn aligned(&self, from: u64, head_len: u64, inline_len: u64) -> u64 {
        let mut at = from.next_multiple_of(SLOT_LEN);
        // One of the few slots of a block fits.
        while inline_len > 0 && (at + head_len) % self.block_len + inline_len > self.block_len {
            at += SLOT_LEN;
        }
        at
    }

    fn remember(&mut self, gap: Range<u64>) {
        let start = gap.start.next_multiple_of(SLOT_LEN);
        if start + SLOT_LEN > gap.end {
            return;
        }
        if self.gaps.len() == GAP_COUNT_MAX {
            self.gaps.pop_front();
        }
        self.gaps.push_back(start..gap.end);
    }
}

/// True if inline data fits after an inode within one block, whatever precedes it.
pub(super) fn fits(block_len: u64, head_len: u64, inline_len: u64) -> bool {
    head_len % SLOT_LEN + inline_len <= block_len
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_testkit::Random;

    #[test]
    fn nothing_overlaps_and_inline_bytes_stay_in_one_block() {
        for block_len in [512, 4096] {
            let mut random = Random::new(block_len);
            let mut room = Room::new(block_len, 0);
            let mut placed = Vec::new();
            for _ in 0..5000 {
                let head = 32 * (1 + random.below(3)) + 4 * random.below(40);
                let inline = random.below(block_len + 1);
                if random.below(10) == 0 {
                    let count = 1 + random.below(3);
                    let at = room.place_blocks(count);
                    assert_eq!(at % block_len, 0);
                    placed.push(at..at + count * block_len);
                } else if fits(block_len, head, inline) {
                    let at = room.place_inode(head, inline);
                    assert!(at > 0 && at.is_multiple_of(32));
                    let (first, last) = (at + head, at + head + inline);
                    assert!(inline == 0 || first / block_len == (last - 1) / block_len);
                    placed.push(at..last);
                }
            }
            placed.sort_by_key(|range| range.start);
            assert!(placed.windows(2).all(|pair| pair[0].end <= pair[1].start));
            assert!(placed.last().unwrap().end <= room.end());
        }
    }

    #[test]
    fn gaps_before_blocks_are_filled() {
        let mut room = Room::new(4096, 0);
        assert_eq!(room.place_inode(32, 0), 32);
        assert_eq!(room.place_blocks(1), 4096);
        assert_eq!(room.place_inode(64, 100), 64);
        assert_eq!(room.place_inode(4000, 0), 8192);
    }
}

//! Fills fragment blocks with tails, each stored once: one block after the other, or best fit over
//! two.

use crate::seen::{TailBytes, TailId};
use packfs_codec::BranchSet;
use packfs_format::SharedTail;

/// Open fragment blocks if similar files follow each other: a second one would separate them. The
/// unused end of a block is not stored.
pub(crate) const OPEN_IF_ALIKE: usize = 1;
/// Open fragment blocks otherwise: a file that does not fit does not close a block that its
/// neighbors still fit into.
pub(crate) const OPEN_OTHERWISE: usize = 2;

/// A block being filled. It is numbered when full, so numbers follow the order on disk.
struct OpenBlock {
    bytes: Vec<u8>,
    /// Its tails, and the start of each in the block.
    tails: Vec<(TailId, u32)>,
    /// Machine code that its files hold.
    branches: BranchSet,
}

/// A full fragment block, with the positions of its tails.
pub(crate) struct FullBlock {
    pub bytes: Vec<u8>,
    pub tails: Vec<(TailId, SharedTail)>,
    pub branches: BranchSet,
}

/// Fragment blocks that are being filled.
pub(crate) struct Tails {
    block_len: usize,
    open_count: usize,
    open: Vec<OpenBlock>,
    next_index: u32,
}

impl Tails {
    /// Creates an empty set: blocks are numbered from `first_index`; `open_count` of them, at least
    /// one, are filled at a time.
    pub(crate) fn new(block_len: usize, first_index: u32, open_count: usize) -> Self {
        Tails { block_len, open_count, open: Vec::new(), next_index: first_index }
    }

    /// Adds a tail to the fullest open block with room for it. Returns a block that had to be
    /// closed first, if any. `branches`: machine code that the file holds.
    pub(crate) fn add(&mut self, id: TailId, tail: &TailBytes, branches: BranchSet) -> Option<FullBlock> {
        let len = tail.bytes.len();
        let room_for = |block: &OpenBlock| block.bytes.len() + len <= self.block_len;
        let fullest = |open: &[OpenBlock], fits: &dyn Fn(&OpenBlock) -> bool| {
            (0..open.len())
                .filter(|&i| fits(&open[i]))
                .max_by_key(|&i| (open[i].bytes.len(), std::cmp::Reverse(i)))
        };
        let mut closed = None;
        let index = match fullest(&self.open, &room_for) {
            Some(index) => index,
            None => {
                if self.open.len() >= self.open_count {
                    let full = fullest(&self.open, &|_| true).unwrap_or(0);
                    let block = self.open.remove(full);
                    closed = Some(self.close(block));
                }
                let bytes = Vec::with_capacity(self.block_len);
                self.open.push(OpenBlock { bytes, tails: Vec::new(), branches: BranchSet::NONE });
                self.open.len() - 1
            }
        };
        let block = &mut self.open[index];
        block.branches = block.branches.union(branches);
        block.tails.push((id, block.bytes.len() as u32));
        block.bytes.extend_from_slice(&tail.bytes);
        closed
    }

    /// Closes the remaining blocks, oldest first.
    pub(crate) fn finish(&mut self) -> Vec<FullBlock> {
        std::mem::take(&mut self.open).into_iter().map(|block| self.close(block)).collect()
    }

    fn close(&mut self, block: OpenBlock) -> FullBlock {
        let index = self.next_index;
        self.next_index += 1;
        let place = |(id, offset)| (id, SharedTail { index, offset });
        let tails = block.tails.into_iter().map(place).collect();
        FullBlock { bytes: block.bytes, tails, branches: block.branches }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(len: usize) -> TailBytes {
        TailBytes { bytes: vec![7; len].into(), hash: len as u128 }
    }

    #[test]
    fn fills_the_fullest_block_that_has_room() {
        let mut tails = Tails::new(100, 0, 2);
        for (id, len) in [60, 50, 45, 30].into_iter().enumerate() {
            assert!(tails.add(id as u32, &tail(len), BranchSet::NONE).is_none());
        }
        let blocks = tails.finish();
        let lens: Vec<usize> = blocks.iter().map(|block| block.bytes.len()).collect();
        assert_eq!(lens, [90, 95]);
        assert_eq!(blocks[0].tails[1], (3, SharedTail { index: 0, offset: 60 }));
    }

    #[test]
    fn closes_the_fullest_block_when_too_many_are_open() {
        let mut tails = Tails::new(100, 0, 2);
        for (id, len) in [80, 90].into_iter().enumerate() {
            assert!(tails.add(id as u32, &tail(len), BranchSet::NONE).is_none());
        }
        let closed = tails.add(2, &tail(99), BranchSet::NONE).expect("a third block needs one closed");
        assert_eq!(closed.bytes.len(), 90);
        assert_eq!(closed.tails, [(1, SharedTail { index: 0, offset: 0 })]);
        assert_eq!(tails.finish().len(), 2);
    }

    #[test]
    fn one_open_block_keeps_neighbours_together() {
        let mut tails = Tails::new(100, 5, OPEN_IF_ALIKE);
        let closed: Vec<Option<usize>> = [60, 30, 20, 70, 10]
            .into_iter()
            .enumerate()
            .map(|(id, len)| tails.add(id as u32, &tail(len), BranchSet::NONE).map(|block| block.tails.len()))
            .collect();
        assert_eq!(closed, [None, None, Some(2), None, None]);
        let last = tails.finish();
        assert_eq!((last.len(), last[0].tails[0].1.index, last[0].bytes.len()), (1, 6, 100));
    }
}

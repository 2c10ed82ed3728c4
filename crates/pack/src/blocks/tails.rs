//! Fills fragment blocks with tails, one block after the other, so that neighbors stay together.

use crate::seen::{TailBytes, TailId};
use packfs_codec::BranchSet;
use packfs_format::SharedTail;

/// A fragment block, with the positions of its tails.
pub(crate) struct FullBlock {
    pub bytes: Vec<u8>,
    pub tails: Vec<(TailId, SharedTail)>,
    pub branches: BranchSet,
}

pub(crate) struct Tails {
    block_len: usize,
    index: u32,
    open: FullBlock,
}

impl Tails {
    /// Blocks are numbered from `first_index`.
    pub(crate) fn new(block_len: usize, first_index: u32) -> Self {
        Tails { block_len, index: first_index, open: FullBlock::with_room(block_len) }
    }

    /// Returns the block that had no room for it and was closed, if any.
    pub(crate) fn add(&mut self, id: TailId, tail: &TailBytes, branches: BranchSet) -> Option<FullBlock> {
        let has_room = self.open.bytes.len() + tail.bytes.len() <= self.block_len;
        let closed = if has_room { None } else { self.close() };
        let block = &mut self.open;
        block.branches = block.branches.union(branches);
        block.tails.push((id, SharedTail { index: self.index, offset: block.bytes.len() as u32 }));
        block.bytes.extend_from_slice(&tail.bytes);
        closed
    }

    pub(crate) fn close(&mut self) -> Option<FullBlock> {
        if self.open.tails.is_empty() {
            return None;
        }
        self.index += 1;
        Some(std::mem::replace(&mut self.open, FullBlock::with_room(self.block_len)))
    }
}

impl FullBlock {
    fn with_room(len: usize) -> Self {
        FullBlock { bytes: Vec::with_capacity(len), tails: Vec::new(), branches: BranchSet::NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(len: usize) -> TailBytes {
        TailBytes { bytes: vec![7; len].into(), hash: len as u128 }
    }

    #[test]
    fn a_tail_without_room_closes_the_block() {
        let mut tails = Tails::new(100, 5);
        let closed: Vec<Option<usize>> = [60, 30, 20, 70, 10]
            .into_iter()
            .enumerate()
            .map(|(id, len)| tails.add(id as u32, &tail(len), BranchSet::NONE).map(|block| block.tails.len()))
            .collect();
        assert_eq!(closed, [None, None, Some(2), None, None]);
        let last = tails.close().expect("a block is open");
        assert_eq!((last.tails[0].1.index, last.bytes.len()), (6, 100));
        assert_eq!(last.tails[2], (4, SharedTail { index: 6, offset: 90 }));
        assert!(tails.close().is_none());
    }
}

//! Blocks of SquashFS that tails of several files share (fragments), found from the files.
//!
//! Where one is encoded, every extent in it names it. Of one that is stored as it is extents only name their own bytes, though Linux
//! reads all of it; where such a block ends is told from tails: packfs closes a block when the next tail does not fit.

use packfs::{ExtentFrom, InodeId, InodeKind, Result, SpaceOwner, Volume};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

/// What is being found.
pub(super) struct Finding {
    block_len: u64,
    /// Where shared blocks lie together.
    runs: Vec<Range<u64>>,
    blocks: BTreeMap<u64, u64>,
    /// Tails in blocks that are stored as they are, by place.
    tails: BTreeMap<u64, u64>,
}

/// All shared blocks of an image: where each begins, and how much is stored.
pub(super) struct Shared(Vec<(u64, u64)>);

impl Finding {
    /// Nothing yet, of an image whose blocks have so many bytes.
    pub(super) fn new(block_len: u64, space: &[SpaceOwner]) -> Finding {
        let shared = space.iter().filter(|row| row.owner == "fragments");
        let runs = shared.map(|row| row.offset..row.offset + row.len).collect();
        Finding { block_len: block_len.max(1), runs, blocks: BTreeMap::new(), tails: BTreeMap::new() }
    }

    /// Looks at the tail of a file.
    ///
    /// Errors: those of reading the image.
    pub(super) fn file(&mut self, volume: &dyn Volume, id: InodeId) -> Result<()> {
        let InodeKind::File { len: len @ 1.. } = volume.inode(id)?.kind else { return Ok(()) };
        let start = (len - 1) / self.block_len * self.block_len;
        volume.extents(id, start..len, &mut |extent| {
            match extent.from {
                ExtentFrom::Block { block, .. } if self.is_shared(block.offset) => {
                    self.blocks.insert(block.offset, u64::from(block.stored_len));
                }
                ExtentFrom::Stored(offset) if self.is_shared(offset) => {
                    self.tails.insert(offset, extent.len);
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })
    }

    fn is_shared(&self, offset: u64) -> bool {
        let after = self.runs.partition_point(|run| run.start <= offset);
        after.checked_sub(1).and_then(|index| self.runs.get(index)).is_some_and(|run| run.contains(&offset))
    }

    /// What was found.
    pub(super) fn finish(self) -> Shared {
        let Finding { block_len, mut blocks, tails, .. } = self;
        let mut open: Option<Range<u64>> = None;
        for (start, len) in tails {
            open = match open {
                Some(block) if start <= block.end && start + len <= block.start + block_len => {
                    Some(block.start..block.end.max(start + len))
                }
                full => {
                    blocks.extend(full.map(|block| (block.start, block.end - block.start)));
                    Some(start..start + len)
                }
            };
        }
        blocks.extend(open.map(|block| (block.start, block.end - block.start)));
        Shared(blocks.into_iter().collect())
    }
}

impl Shared {
    /// The block in which a place lies, by number, with where it begins and how much is stored.
    pub(super) fn find(&self, offset: u64) -> Option<(usize, u64, u64)> {
        let index = self.0.partition_point(|&(start, _)| start <= offset).checked_sub(1)?;
        let &(start, len) = self.0.get(index)?;
        (offset < start + len).then_some((index, start, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_that_are_stored_make_up_blocks() {
        let mut finding = Finding::new(100, &[]);
        finding.tails = BTreeMap::from([(1000, 60), (1060, 40), (1100, 70), (1170, 40), (1500, 10)]);
        finding.blocks.insert(1300, 20);
        let shared = finding.finish();
        assert_eq!(shared.0, [(1000, 100), (1100, 70), (1170, 40), (1300, 20), (1500, 10)]);
        assert_eq!(shared.find(1099), Some((0, 1000, 100)));
        assert_eq!(shared.find(1319), Some((3, 1300, 20)));
        assert_eq!(shared.find(1320), None);
        assert_eq!(shared.find(999), None);
    }
}

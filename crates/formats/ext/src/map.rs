//! Places of a file's blocks: extent trees, and maps with direct and indirect blocks.
//!
//! Invariant: a walk ends. Trees are at most [`DEPTH_MAX`] deep, the ranges of their nodes do not
//! overlap, and no walk hands out more blocks than the image has.

use crate::bytes::{field, joined, le16, le32};
use crate::corruption::Corruption;
use crate::disk::SuperBlock;
use crate::features::SHARED_BLOCKS;
use crate::inode::{EXTENTS, RawInode};
use crate::reader::{NodeKind, Reader};
use crate::run::{Piece, Run};
use crate::sums::Mismatch;
use packfs_core::{Result, range_at};
use packfs_format::crc32c;
use std::ops::{ControlFlow, Range};

const EXTENT_MAGIC: u16 = 0xf30a;
/// Bytes of the header of a node, and of each of its rows.
const ROW_LEN: usize = 12;
/// Deepest tree that Linux reads.
const DEPTH_MAX: u16 = 5;
/// Longest extent that is written; longer ones are not, less this.
const WRITTEN_MAX: u16 = 0x8000;
/// First block of a file that no tree holds.
const BLOCKS_END: u64 = 1 << 32;
/// Block numbers in an inode that lead to data.
const DIRECT: usize = 12;
/// Times that blocks of an image may be used, where files share them.
const SHARES_MAX: u64 = 64;

type Visit<'v> = &'v mut dyn FnMut(Piece) -> ControlFlow<()>;

struct MapWalk<'w> {
    reader: &'w Reader,
    inode: &'w RawInode,
    wanted: Range<u64>,
    /// Blocks that may still be handed out.
    left: u64,
    pending: Option<Run>,
    visit: Visit<'w>,
}

impl Reader {
    /// Calls `visit` for the runs that hold some of the `wanted` blocks of an inode, in order, and
    /// for the blocks that describe them.
    pub(crate) fn pieces(&self, inode: &RawInode, wanted: Range<u64>, visit: Visit<'_>) -> Result<()> {
        if let Some(runs) = self.patches.runs(inode.number) {
            let before = runs.partition_point(|run| run.first.saturating_add(run.count) <= wanted.start);
            let wanted = runs.iter().skip(before).take_while(|run| run.first < wanted.end);
            for run in wanted {
                if visit(Piece::Run(*run)).is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let left = blocks_max(&self.super_block, self.image.len());
        let mut walk = MapWalk { reader: self, inode, wanted, left, pending: None, visit };
        let flow = match inode.has(EXTENTS) {
            true => walk.tree(inode.block_field(), None, 0..BLOCKS_END)?,
            false => walk.block_map()?,
        };
        if let (ControlFlow::Continue(()), Some(last)) = (flow, walk.pending) {
            let _ = (walk.visit)(Piece::Run(last));
        }
        Ok(())
    }

    /// Calls `visit` as [`Reader::pieces`] does, without the blocks that describe runs.
    pub(crate) fn runs(
        &self,
        inode: &RawInode,
        wanted: Range<u64>,
        visit: &mut dyn FnMut(Run) -> ControlFlow<()>,
    ) -> Result<()> {
        self.pieces(inode, wanted, &mut |piece| match piece {
            Piece::Run(run) => visit(run),
            Piece::Node(_) => ControlFlow::Continue(()),
        })
    }

    /// Verifies a node of an extent tree.
    fn verify_extents(&self, inode: &RawInode, block: u64, bytes: &[u8]) -> Result<()> {
        if !self.sums.all {
            return Ok(());
        }
        let seed = self.sums.inode_seed(inode.number, inode.generation());
        let end = ROW_LEN.saturating_mul(usize::from(le16(bytes, 4)).saturating_add(1));
        match Mismatch::of(le32(bytes, end), crc32c(seed, field(bytes, 0, end))) {
            Some(Mismatch { found, wanted }) => {
                Err(Corruption::ExtentSum { inode: inode.number, block, found, wanted }.into())
            }
            None => Ok(()),
        }
    }
}

/// Returns the number of blocks that one file can have.
fn blocks_max(super_block: &SuperBlock, image_len: u64) -> u64 {
    let blocks = image_len.div_ceil(super_block.block_len).max(super_block.block_count.min(1 << 16));
    match super_block.features.forbids(SHARED_BLOCKS) {
        true => blocks.saturating_mul(SHARES_MAX),
        false => blocks,
    }
}

impl MapWalk<'_> {
    fn fault(&self, fault: &'static str) -> Corruption {
        Corruption::ExtentHeader { inode: self.inode.number, fault }
    }

    /// Walks a node of an extent tree; `bounds` are the blocks of the file that it may describe.
    fn tree(&mut self, node: &[u8], depth: Option<u16>, bounds: Range<u64>) -> Result<ControlFlow<()>> {
        let [count, max, own_depth] = [2, 4, 6].map(|at| le16(node, at));
        if le16(node, 0) != EXTENT_MAGIC {
            return Err(self.fault("a node without its magic number").into());
        }
        if own_depth > DEPTH_MAX || depth.is_some_and(|depth| depth != own_depth) {
            return Err(self.fault("a node of another depth").into());
        }
        let room = node.len().saturating_sub(ROW_LEN) / ROW_LEN;
        if usize::from(max) > room || max == 0 || count > max || (count == 0 && own_depth > 0) {
            return Err(self.fault("a node with another number of rows than it has room for").into());
        }
        let rows = node.get(ROW_LEN..).unwrap_or_default().chunks_exact(ROW_LEN).take(usize::from(count));
        match own_depth.checked_sub(1) {
            None => self.leaf(rows, bounds),
            Some(depth) => self.branch(rows, depth, bounds),
        }
    }

    /// Walks the rows of a leaf.
    fn leaf<'r>(
        &mut self,
        rows: impl Iterator<Item = &'r [u8]>,
        bounds: Range<u64>,
    ) -> Result<ControlFlow<()>> {
        let mut start = bounds.start;
        for row in rows {
            let len = le16(row, 4);
            let first = u64::from(le32(row, 0));
            let is_written = len <= WRITTEN_MAX;
            let count = u64::from(if is_written { len } else { len & !WRITTEN_MAX });
            let block = joined(le32(row, 8), u32::from(le16(row, 6)));
            if count == 0 {
                return Err(self.fault("an extent without blocks").into());
            }
            let end = first.saturating_add(count);
            if first < start || end > bounds.end {
                return Err(self.order(first, start..bounds.end).into());
            }
            start = end;
            self.reader.check_blocks(self.inode.number, block, count)?;
            if first >= self.wanted.end {
                break;
            }
            if self.push(Run { first, count, block, is_written })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Walks the nodes that a node leads to.
    fn branch<'r>(
        &mut self,
        rows: impl Iterator<Item = &'r [u8]>,
        depth: u16,
        bounds: Range<u64>,
    ) -> Result<ControlFlow<()>> {
        let mut rows = rows.peekable();
        let mut start = bounds.start;
        while let Some(row) = rows.next() {
            let first = u64::from(le32(row, 0));
            let end = rows.peek().map_or(bounds.end, |next| u64::from(le32(next, 0)));
            if first < start || end <= first || end > bounds.end {
                return Err(self.order(first, start..bounds.end).into());
            }
            start = end;
            if first >= self.wanted.end {
                break;
            }
            if end <= self.wanted.start {
                continue;
            }
            let block = joined(le32(row, 4), u32::from(le16(row, 8)));
            let verify = |bytes: &[u8]| self.reader.verify_extents(self.inode, block, bytes);
            let node = self.reader.node(self.inode.number, block, NodeKind::Map, verify)?;
            let flow = self.node(block)?;
            if flow.is_break() || self.tree(&node.bytes, Some(depth), first..end)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn order(&self, found: u64, allowed: Range<u64>) -> Corruption {
        let Range { start, end } = allowed;
        Corruption::ExtentOrder { inode: self.inode.number, found, start, end }
    }

    /// Walks a map of direct and indirect blocks.
    fn block_map(&mut self) -> Result<ControlFlow<()>> {
        let pointers = self.reader.super_block.block_len / 4;
        let mut first = 0_u64;
        for (index, pointer) in self.inode.block_field().chunks_exact(4).enumerate() {
            let level = index.saturating_sub(DIRECT.saturating_sub(1));
            let span = (0..level).fold(1_u64, |span, _| span.saturating_mul(pointers));
            let range = range_at(first, span);
            first = range.end;
            if self.pointer(u64::from(le32(pointer, 0)), level, range)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Follows a pointer that stands for a range of the file's blocks.
    fn pointer(&mut self, block: u64, level: usize, range: Range<u64>) -> Result<ControlFlow<()>> {
        if block == 0 || range.end <= self.wanted.start || range.start >= self.wanted.end {
            return Ok(ControlFlow::Continue(()));
        }
        self.reader.check_blocks(self.inode.number, block, 1)?;
        let Some(below) = level.checked_sub(1) else {
            return self.push(Run { first: range.start, count: 1, block, is_written: true });
        };
        let node = self.reader.node(self.inode.number, block, NodeKind::Map, |_| Ok(()))?;
        if self.node(block)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let pointers = self.reader.super_block.block_len / 4;
        let span = (0..below).fold(1_u64, |span, _| span.saturating_mul(pointers));
        let mut first = range.start;
        for pointer in node.bytes.chunks_exact(4) {
            let range = range_at(first, span);
            first = range.end;
            if self.pointer(u64::from(le32(pointer, 0)), below, range)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Hands out a block that describes others.
    fn node(&mut self, block: u64) -> Result<ControlFlow<()>> {
        self.spend(1)?;
        Ok((self.visit)(Piece::Node(block)))
    }

    fn spend(&mut self, count: u64) -> Result<()> {
        let max = blocks_max(&self.reader.super_block, self.reader.image.len());
        let left = self.left.checked_sub(count);
        self.left = left.ok_or(Corruption::TooMany { inode: self.inode.number, max })?;
        Ok(())
    }

    /// Joins runs, and hands out those that are complete.
    fn push(&mut self, run: Run) -> Result<ControlFlow<()>> {
        let end = run.first.saturating_add(run.count);
        if end <= self.wanted.start || run.first >= self.wanted.end {
            return Ok(ControlFlow::Continue(()));
        }
        self.spend(run.count)?;
        if let Some(last) = &mut self.pending {
            let (next, next_block) = (last.first.checked_add(last.count), last.block.checked_add(last.count));
            let goes_on = next == Some(run.first) && next_block == Some(run.block);
            if goes_on && last.is_written == run.is_written {
                last.count = last.count.saturating_add(run.count);
                return Ok(ControlFlow::Continue(()));
            }
        }
        Ok(match self.pending.replace(run) {
            Some(done) => (self.visit)(Piece::Run(done)),
            None => ControlFlow::Continue(()),
        })
    }
}

//! Block addresses of files: extent trees, and maps with direct and indirect blocks.
//!
//! Invariant: a walk ends. Trees are at most [`DEPTH_MAX`] deep, the ranges of their nodes do not
//! overlap, and no walk reports more blocks than the image has.

use crate::bytes::joined;
use crate::corruption::Corruption;
use crate::disk::{Extent, ExtentHeader, ExtentIdx};
use crate::features::SHARED_BLOCKS;
use crate::inode::{EXTENTS, RawInode};
use crate::reader::{NodeKind, Reader};
use crate::run::{Piece, Run};
use crate::sums::Mismatch;
use crate::super_block::SuperBlock;
use packfs_core::{Result, range_at};
use packfs_format::{crc32c, structure, structures, units::*};
use std::ops::{ControlFlow, Range};
use zerocopy::little_endian::U32;

pub(crate) const EXTENT_MAGIC: u16 = 0xf30a;
/// Length of a node's header and of each of its rows.
const ROW_LEN: usize = size_of::<ExtentHeader>();
/// Maximum depth that Linux reads.
const DEPTH_MAX: u16 = 5;
/// Maximum length of a written extent; larger values mark unwritten extents, less this.
const WRITTEN_MAX: u16 = 0x8000;
/// Limit of the blocks of a file with an extent tree.
const BLOCKS_END: u64 = 1 << 32;
const DIRECT: usize = 12;
/// Times that blocks of an image may be reported if files share them.
const SHARES_MAX: u64 = 64;

type Visit<'v> = &'v mut dyn FnMut(Piece) -> ControlFlow<()>;

struct MapWalk<'w> {
    reader: &'w Reader,
    inode: &'w RawInode,
    wanted: Range<u64>,
    /// Remaining budget of blocks.
    left: u64,
    pending: Option<Run>,
    visit: Visit<'w>,
}

impl Reader {
    /// Calls `visit` for the runs that contain `wanted` blocks of an inode, in order, and for the
    /// blocks of the map itself.
    pub(crate) fn pieces(&self, inode: &RawInode, wanted: Range<u64>, visit: Visit<'_>) -> Result<()> {
        if let Some(runs) = self.patches.runs(inode.number) {
            let before = runs.partition_point(|run| run.first.plus(run.count) <= wanted.start);
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
        let walked = if inode.has(EXTENTS) {
            walk.tree(inode.block_field(), None, 0..BLOCKS_END)
        } else {
            walk.block_map()
        };
        // Runs before a fault are reported.
        if let Some(last) = walk.pending.filter(|_| !matches!(walked, Ok(ControlFlow::Break(())))) {
            let _ = (walk.visit)(Piece::Run(last));
        }
        walked.map(drop)
    }

    /// Like [`Reader::pieces`], without the blocks of the map.
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

    fn verify_extents(&self, inode: &RawInode, block: u64, bytes: &[u8]) -> Result<()> {
        if !self.sums.all {
            return Ok(());
        }
        let seed = self.sums.inode_seed(inode.number, inode.generation());
        let inode = inode.number;
        let fault = Corruption::ExtentHeader { inode, fault: "a node without room for its checksum" };
        let head: ExtentHeader = structure(bytes, 0).ok_or(fault)?;
        let end = ROW_LEN.times(usize::from(head.eh_max.get()).plus(1));
        let (found, summed) = structure(bytes, end).zip(bytes.get(..end)).ok_or(fault)?;
        match Mismatch::of(U32::get(found), crc32c(seed, summed)) {
            Some(Mismatch { found, wanted }) => {
                Err(Corruption::ExtentSum { inode, block, found, wanted }.into())
            }
            None => Ok(()),
        }
    }
}

fn blocks_max(super_block: &SuperBlock, image_len: u64) -> u64 {
    let blocks = image_len.div_ceil(super_block.block_len).max(super_block.block_count.min(1 << 16));
    if super_block.features.forbids(SHARED_BLOCKS) { blocks.times(SHARES_MAX) } else { blocks }
}

impl Extent {
    /// Returns the run of an extent; lengths above 2^15 mark unwritten ones.
    pub(crate) fn run(&self) -> Run {
        let len = self.ee_len.get();
        let is_written = len <= WRITTEN_MAX;
        Run {
            first: self.ee_block.get().into(),
            count: if is_written { len } else { len & !WRITTEN_MAX }.into(),
            block: joined(self.ee_start_lo, self.ee_start_hi.get()),
            is_written,
        }
    }
}

impl MapWalk<'_> {
    fn fault(&self, fault: &'static str) -> Corruption {
        Corruption::ExtentHeader { inode: self.inode.number, fault }
    }

    /// Walks a node of an extent tree; `bounds` are the file blocks that it may describe.
    fn tree(&mut self, node: &[u8], depth: Option<u16>, bounds: Range<u64>) -> Result<ControlFlow<()>> {
        let head = structure(node, 0).filter(|head: &ExtentHeader| head.eh_magic.get() == EXTENT_MAGIC);
        let head = head.ok_or(self.fault("a node without its magic number"))?;
        let count = head.eh_entries.get();
        let max = head.eh_max.get();
        let own_depth = head.eh_depth.get();
        if own_depth > DEPTH_MAX || depth.is_some_and(|depth| depth != own_depth) {
            return Err(self.fault("a node of another depth").into());
        }
        let room = node.len().minus(ROW_LEN) / ROW_LEN;
        if usize::from(max) > room || max == 0 || count > max || (count == 0 && own_depth > 0) {
            return Err(self.fault("a node with another number of rows than it has room for").into());
        }
        let rows = node.within(ROW_LEN..);
        let count = usize::from(count);
        match own_depth.checked_sub(1) {
            None => self.leaf(structures(rows).take(count), bounds),
            Some(depth) => self.branch(structures(rows).take(count), depth, bounds),
        }
    }

    fn leaf(&mut self, rows: impl Iterator<Item = Extent>, bounds: Range<u64>) -> Result<ControlFlow<()>> {
        let mut start = bounds.start;
        for row in rows {
            let run @ Run { first, count, block, .. } = row.run();
            if count == 0 {
                return Err(self.fault("an extent without blocks").into());
            }
            let end = first.plus(count);
            if first < start || end > bounds.end {
                return Err(self.order(first, start..bounds.end).into());
            }
            start = end;
            self.reader.check_blocks(self.inode.number, block, count)?;
            if first >= self.wanted.end {
                break;
            }
            if self.push(run)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn branch(
        &mut self,
        rows: impl Iterator<Item = ExtentIdx>,
        depth: u16,
        bounds: Range<u64>,
    ) -> Result<ControlFlow<()>> {
        let mut rows = rows.peekable();
        let mut start = bounds.start;
        while let Some(row) = rows.next() {
            let first = u64::from(row.ei_block.get());
            let end = rows.peek().map_or(bounds.end, |next| next.ei_block.get().into());
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
            let block = joined(row.ei_leaf_lo, row.ei_leaf_hi.get());
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

    fn block_map(&mut self) -> Result<ControlFlow<()>> {
        let pointers = self.reader.super_block.block_len / 4;
        let mut first = 0_u64;
        for (index, pointer) in self.inode.fields.i_block.into_iter().enumerate() {
            let level = left(index, DIRECT.minus(1));
            let span = (0..level).fold(1_u64, |span, _| span.times(pointers));
            let range = range_at(first, span);
            first = range.end;
            if self.pointer(pointer.get().into(), level, range)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Follows a pointer, which covers a range of the file's blocks.
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
        let span = (0..below).fold(1_u64, |span, _| span.times(pointers));
        let mut first = range.start;
        for pointer in structures::<U32>(&node.bytes) {
            let range = range_at(first, span);
            first = range.end;
            if self.pointer(pointer.get().into(), below, range)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

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

    /// Joins adjacent runs, and reports complete ones.
    fn push(&mut self, run: Run) -> Result<ControlFlow<()>> {
        let end = run.first.plus(run.count);
        if end <= self.wanted.start || run.first >= self.wanted.end {
            return Ok(ControlFlow::Continue(()));
        }
        self.spend(run.count)?;
        if let Some(last) = &mut self.pending {
            let next = last.first.checked_add(last.count);
            let next_block = last.block.checked_add(last.count);
            let goes_on = next == Some(run.first) && next_block == Some(run.block);
            if goes_on && last.is_written == run.is_written {
                last.count = last.count.plus(run.count);
                return Ok(ControlFlow::Continue(()));
            }
        }
        Ok(match self.pending.replace(run) {
            Some(done) => (self.visit)(Piece::Run(done)),
            None => ControlFlow::Continue(()),
        })
    }
}

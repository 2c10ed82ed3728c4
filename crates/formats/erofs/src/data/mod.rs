//! Contents of inodes: every layout converted to extents.
//!
//! Owns the common part of all layouts: cutting to the requested range, joining adjacent runs, and
//! continuing in the packed inode. Invariant: extents are in file order, cover the range without
//! gaps, and every stored range is within the address space. Never reads the data itself.

mod chunks;
mod clusters;
mod encoded;
mod flat;
mod lclusters;
mod map_header;
mod stored;

use crate::corruption::{Allowed, Corruption, Place};
use crate::disk::*;
use crate::raw::{Layout, RawInode};
use crate::reader::Reader;
pub(crate) use map_header::ClusterMap;
use packfs_codec::Algorithm;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{Error, Result, len_of, u32_of};
use packfs_format::{Extent, ExtentFrom, units::*};
use std::ops::{ControlFlow, Range};

/// Longest accepted decoded cluster. Kernels since 6.15 accept 12 MiB.
pub(crate) const DECODED_LEN_MAX: u64 = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunFrom {
    /// Zeros, as [`ExtentFrom::Hole`].
    Hole,
    /// Uncompressed bytes, as [`ExtentFrom::Stored`].
    Stored(u64),
    /// Part of a decoded block, as [`ExtentFrom::Block`].
    Block(BlockRef, u32),
    Packed(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) from: RunFrom,
}

impl Run {
    fn cut(self, range: &Range<u64>) -> Option<Run> {
        let start = self.offset.max(range.start);
        let end = end_of(self.offset, self.len).min(range.end);
        if start >= end {
            return None;
        }
        let skipped = start.minus(self.offset);
        let from = match self.from {
            RunFrom::Hole => RunFrom::Hole,
            RunFrom::Stored(at) => RunFrom::Stored(at.plus(skipped)),
            RunFrom::Block(block, first) => RunFrom::Block(block, first.plus(u32_of(skipped))),
            RunFrom::Packed(at) => RunFrom::Packed(at.plus(skipped)),
        };
        Some(Run { offset: start, len: end.minus(start), from })
    }
}

/// Receives runs of a layout, cuts them to a range, and records where the layout may stop.
pub(crate) struct Runs<'a> {
    pub(crate) range: Range<u64>,
    visit: &'a mut dyn FnMut(Run) -> ControlFlow<()>,
}

impl Runs<'_> {
    /// Breaks when no more runs are needed.
    pub(crate) fn push(&mut self, offset: u64, len: u64, from: RunFrom) -> ControlFlow<()> {
        match (Run { offset, len, from }).cut(&self.range) {
            Some(run) => (self.visit)(run)?,
            None if offset >= self.range.end => return ControlFlow::Break(()),
            None => {}
        }
        if end_of(offset, len) >= self.range.end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Joins adjacent runs and passes them on as extents.
struct Joiner<'a> {
    waiting: Option<Extent>,
    visit: &'a mut dyn FnMut(Extent) -> ControlFlow<()>,
}

impl Joiner<'_> {
    fn push(&mut self, next: Extent) -> ControlFlow<()> {
        if let Some(waiting) = &mut self.waiting {
            let continues = match (waiting.from, next.from) {
                (ExtentFrom::Hole, ExtentFrom::Hole) => true,
                (ExtentFrom::Stored(a), ExtentFrom::Stored(b)) => a.checked_add(waiting.len) == Some(b),
                _ => false,
            };
            if continues {
                waiting.len = waiting.len.plus(next.len);
                return ControlFlow::Continue(());
            }
        }
        match self.waiting.replace(next) {
            Some(complete) => (self.visit)(complete),
            None => ControlFlow::Continue(()),
        }
    }

    fn finish(mut self) {
        if let Some(last) = self.waiting.take() {
            let _ = (self.visit)(last);
        }
    }
}

impl Reader {
    /// Calls `visit` for the extents of `range` of an inode's contents, in order, until `visit`
    /// breaks.
    pub(crate) fn content(
        &self,
        raw: &RawInode,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut joiner = Joiner { waiting: None, visit };
        let mut packed = None;
        let mut broken = false;
        self.runs(raw, range, &mut |run| {
            let from = match run.from {
                RunFrom::Hole => ExtentFrom::Hole,
                RunFrom::Stored(at) => ExtentFrom::Stored(at),
                RunFrom::Block(block, start) => ExtentFrom::Block { block, start },
                RunFrom::Packed(at) => {
                    packed = Some((run, at));
                    return ControlFlow::Break(());
                }
            };
            let flow = joiner.push(Extent { offset: run.offset, len: run.len, from });
            broken = flow.is_break();
            flow
        })?;
        if broken {
            return Ok(());
        }
        if let Some((run, at)) = packed {
            broken = self.packed_runs(raw, run, at, &mut joiner)?;
        }
        if !broken {
            joiner.finish();
        }
        Ok(())
    }

    /// Passes on the part of the packed inode that is a run of another inode; true if the visitor
    /// broke.
    fn packed_runs(&self, raw: &RawInode, run: Run, at: u64, joiner: &mut Joiner<'_>) -> Result<bool> {
        let (packed, end) = self.check_packed(raw, at, run.len)?;
        let mut outcome = Ok(false);
        self.runs(packed, at..end, &mut |part| {
            let from = match part.from {
                RunFrom::Hole => ExtentFrom::Hole,
                RunFrom::Stored(at) => ExtentFrom::Stored(at),
                RunFrom::Block(block, start) => ExtentFrom::Block { block, start },
                RunFrom::Packed(_) => {
                    outcome = Err(raw.place.fault("a part of the packed inode is packed itself"));
                    return ControlFlow::Break(());
                }
            };
            let offset = run.offset.plus(part.offset.minus(at));
            let flow = joiner.push(Extent { offset, len: part.len, from });
            if flow.is_break() {
                outcome = Ok(true);
            }
            flow
        })?;
        outcome
    }

    /// Checks the range of the packed inode that a run refers to; returns the packed inode and the
    /// end of the range.
    fn check_packed(&self, raw: &RawInode, at: u64, len: u64) -> Result<(&RawInode, u64)> {
        let place = raw.place;
        let packed = self.packed.as_ref();
        let packed = packed.ok_or_else(|| place.fault("a part is packed, but there is no packed inode"))?;
        if packed.nid == raw.nid {
            return Err(place.fault("the packed inode is packed into itself"));
        }
        let end = at.checked_add(len).filter(|&end| end <= packed.size);
        let end = end.ok_or_else(|| place.outside("the packed inode", at, len, packed.size))?;
        Ok((packed, end))
    }

    pub(crate) fn runs(
        &self,
        raw: &RawInode,
        range: Range<u64>,
        visit: &mut dyn FnMut(Run) -> ControlFlow<()>,
    ) -> Result<()> {
        let range = Reader::cut(raw, range);
        if range.is_empty() {
            return Ok(());
        }
        let mut runs = Runs { range, visit };
        match raw.layout {
            Layout::FlatPlain | Layout::FlatInline => self.flat_runs(raw, &mut runs),
            Layout::ChunkBased => self.chunk_runs(raw, &mut runs),
            Layout::CompressedFull | Layout::CompressedCompact => match self.cluster_map(raw)? {
                ClusterMap::Packed(at) => {
                    let _ = runs.push(0, raw.size, RunFrom::Packed(at));
                    Ok(())
                }
                ClusterMap::Index(index) => self.index_runs(raw, &index, &mut runs),
                ClusterMap::Encoded(records) => self.encoded_runs(raw, &records, &mut runs),
            },
        }
    }

    /// Refuses inline data that crosses a block, as kernels do.
    fn check_inline(&self, place: Place, at: u64, len: u64) -> Result<()> {
        if end_of(self.geometry.in_block(at), len) > self.geometry.block_len() {
            return Err(place.fault("inline data that crosses the end of a block"));
        }
        if at.checked_add(len).is_none_or(|end| end > self.space_end()) {
            return Err(place.outside("the image", at, len, self.space_end()));
        }
        Ok(())
    }

    /// Errors: `Corrupt` for an algorithm that the superblock does not announce, or implausible
    /// lengths.
    fn cluster_block(
        &self,
        place: Place,
        number: u8,
        stored: Range<u64>,
        decoded_len: u64,
        partial: bool,
    ) -> Result<BlockRef> {
        let (algorithm, word) = match number {
            Z_EROFS_COMPRESSION_LZ4 => (Algorithm::Lz4, "lz4"),
            Z_EROFS_COMPRESSION_LZMA => (Algorithm::MicroLzma, "lzma"),
            Z_EROFS_COMPRESSION_DEFLATE => (Algorithm::Deflate, "deflate"),
            Z_EROFS_COMPRESSION_ZSTD => (Algorithm::Zstd, "zstd"),
            _ => {
                let what = format!("{place}: algorithm {number}, 0 to 3 are known");
                return Err(Error::unsupported("erofs image", what));
            }
        };
        if self.geometry.algorithms >> number & 1 == 0 {
            return Err(Corruption::Unannounced { place, algorithm: word }.into());
        }
        if decoded_len > DECODED_LEN_MAX {
            let allowed = Allowed::AtMost(DECODED_LEN_MAX);
            return Err(place.figure("decoded length of a cluster", decoded_len, allowed));
        }
        // The oldest images have padding after LZ4 data; decoding stops before it.
        let padded = self.geometry.has(EROFS_FEATURE_INCOMPAT_LZ4_0PADDING);
        Ok(BlockRef {
            offset: stored.start,
            stored_len: u32_of(len_of(&stored)),
            decoded_len: u32_of(decoded_len),
            decodes_to: if partial || !padded { DecodedLen::Prefix } else { DecodedLen::Exactly },
            zero_padded: padded,
            algorithm: Some(algorithm),
        })
    }

    /// Passes on an uncompressed cluster: from its start, or rotated within its block by its start
    /// in the file (`interlaced`).
    fn plain_runs(
        &self,
        place: Place,
        logical: Range<u64>,
        stored: Range<u64>,
        interlaced: bool,
        runs: &mut Runs<'_>,
    ) -> Result<ControlFlow<()>> {
        let len = len_of(&logical);
        let skip = self.check_plain(place, &logical, &stored, interlaced)?;
        if !interlaced {
            return Ok(runs.push(logical.start, len, RunFrom::Stored(stored.start)));
        }
        let first = len.min(self.geometry.block_len().minus(skip));
        if runs.push(logical.start, first, RunFrom::Stored(stored.start.plus(skip))).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if first == len {
            return Ok(ControlFlow::Continue(()));
        }
        let rest = logical.start.plus(first)..logical.end;
        Ok(runs.push(rest.start, len_of(&rest), RunFrom::Stored(stored.start)))
    }

    /// Checks an uncompressed cluster. Returns its start within a block of the file, by which an
    /// interlaced one is rotated.
    fn check_plain(
        &self,
        place: Place,
        logical: &Range<u64>,
        stored: &Range<u64>,
        interlaced: bool,
    ) -> Result<u64> {
        let (len, stored_len) = (len_of(logical), len_of(stored));
        if len > stored_len {
            let allowed = Allowed::AtMost(stored_len);
            return Err(place.figure("length of a cluster that is not compressed", len, allowed));
        }
        let skip = self.geometry.in_block(logical.start);
        let first = len.min(self.geometry.block_len().minus(skip));
        let one_block = stored_len <= self.geometry.block_len() && skip.plus(first) <= stored_len;
        if interlaced && !one_block {
            return Err(place.fault("an interlaced cluster that is not one block"));
        }
        Ok(skip)
    }
}

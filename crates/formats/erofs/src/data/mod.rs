//! Contents of inodes: every layout turned into extents.
//!
//! Owns what all layouts share: cutting to the range asked for, joining neighbours, and going on in
//! the packed inode where a tail lies there. Invariant: extents come in file order, cover the range
//! without gaps, and every stored range lies in the address space. Never reads the data itself.

mod chunks;
mod clusters;
mod encoded;
mod flat;
mod lclusters;
mod map_header;
mod stored;

use crate::corruption::{Corruption, Place};
use crate::disk::*;
use crate::raw::{Layout, RawInode};
use crate::reader::Reader;
pub(crate) use map_header::ClusterMap;
use packfs_codec::Algorithm;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{Error, Result, len_of, u32_of};
use packfs_format::{Extent, ExtentFrom};
use std::ops::{ControlFlow, Range};

/// Longest decoded cluster that is believed. Kernels since 6.15 stop at 12 MiB.
pub(crate) const DECODED_LEN_MAX: u64 = 64 << 20;

/// Source of a run of an inode's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunFrom {
    /// Zeros, as [`ExtentFrom::Hole`].
    Hole,
    /// Uncompressed bytes, as [`ExtentFrom::Stored`].
    Stored(u64),
    /// Part of a decoded block, as [`ExtentFrom::Block`].
    Block(BlockRef, u32),
    /// From this offset of the packed inode on.
    Packed(u64),
}

/// A run of an inode's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) from: RunFrom,
}

impl Run {
    /// The part of it that lies in `range`.
    fn cut(self, range: &Range<u64>) -> Option<Run> {
        let start = self.offset.max(range.start);
        let end = self.offset.saturating_add(self.len).min(range.end);
        if start >= end {
            return None;
        }
        let skipped = start.saturating_sub(self.offset);
        let from = match self.from {
            RunFrom::Hole => RunFrom::Hole,
            RunFrom::Stored(at) => RunFrom::Stored(at.saturating_add(skipped)),
            RunFrom::Block(block, first) => RunFrom::Block(block, first.saturating_add(u32_of(skipped))),
            RunFrom::Packed(at) => RunFrom::Packed(at.saturating_add(skipped)),
        };
        Some(Run { offset: start, len: end.saturating_sub(start), from })
    }
}

/// Takes runs of a layout, cut to a range, and remembers where the layout is to stop.
pub(crate) struct Runs<'a> {
    pub(crate) range: Range<u64>,
    visit: &'a mut dyn FnMut(Run) -> ControlFlow<()>,
}

impl Runs<'_> {
    /// Takes a run; breaks when no more are wanted.
    pub(crate) fn push(&mut self, offset: u64, len: u64, from: RunFrom) -> ControlFlow<()> {
        match (Run { offset, len, from }).cut(&self.range) {
            Some(run) => (self.visit)(run)?,
            None if offset >= self.range.end => return ControlFlow::Break(()),
            None => {}
        }
        if offset.saturating_add(len) >= self.range.end {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Joins runs that continue each other before handing them on as extents.
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
                waiting.len = waiting.len.saturating_add(next.len);
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
    /// Calls `visit` for the extents of `range` of an inode's contents, in order. Ends early when
    /// `visit` breaks.
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

    /// Hands on the part of the packed inode that is a run of another inode; says whether the
    /// visitor broke.
    fn packed_runs(&self, raw: &RawInode, run: Run, at: u64, joiner: &mut Joiner<'_>) -> Result<bool> {
        let fault = |fault| Error::from(Corruption::Fault { place: raw.place, fault });
        let (packed, end) = self.check_packed(raw, at, run.len)?;
        let mut outcome = Ok(false);
        self.runs(packed, at..end, &mut |part| {
            let from = match part.from {
                RunFrom::Hole => ExtentFrom::Hole,
                RunFrom::Stored(at) => ExtentFrom::Stored(at),
                RunFrom::Block(block, start) => ExtentFrom::Block { block, start },
                RunFrom::Packed(_) => {
                    outcome = Err(fault("a part of the packed inode is packed itself"));
                    return ControlFlow::Break(());
                }
            };
            let offset = run.offset.saturating_add(part.offset.saturating_sub(at));
            let flow = joiner.push(Extent { offset, len: part.len, from });
            if flow.is_break() {
                outcome = Ok(true);
            }
            flow
        })?;
        outcome
    }

    /// Checks a range of the packed inode that a part of another inode is in; returns the packed
    /// inode and the end of the range.
    fn check_packed(&self, raw: &RawInode, at: u64, len: u64) -> Result<(&RawInode, u64)> {
        let place = raw.place;
        let fault = |fault| Error::from(Corruption::Fault { place, fault });
        let packed =
            self.packed.as_ref().ok_or_else(|| fault("a part is packed, but there is no packed inode"))?;
        if packed.nid == raw.nid {
            return Err(fault("the packed inode is packed into itself"));
        }
        let end = at.checked_add(len).filter(|&end| end <= packed.size).ok_or(Corruption::Outside {
            place,
            what: "the packed inode",
            start: at,
            len,
            end: packed.size,
        })?;
        Ok((packed, end))
    }

    /// Calls `visit` for the runs of `range`, as the inode's layout has them.
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

    /// Checks that data after an inode does not cross a block, as kernels want it.
    fn check_inline(&self, place: Place, at: u64, len: u64) -> Result<()> {
        if self.geometry.in_block(at).saturating_add(len) > self.geometry.block_len() {
            return Err(
                Corruption::Fault { place, fault: "inline data that crosses the end of a block" }.into()
            );
        }
        if at.checked_add(len).is_none_or(|end| end > self.space_end()) {
            let (what, end) = ("the image", self.space_end());
            return Err(Corruption::Outside { place, what, start: at, len, end }.into());
        }
        Ok(())
    }

    /// A compressed cluster as a block.
    ///
    /// Errors: `Corrupt` for an algorithm that the superblock does not announce, or lengths beyond
    /// belief.
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
            let allowed = crate::corruption::Allowed::AtMost(DECODED_LEN_MAX);
            let figure = "decoded length of a cluster";
            return Err(Corruption::Figure { place, figure, found: decoded_len, allowed }.into());
        }
        // The oldest images have their padding after LZ4 data, where only who stops in time does
        // not see it.
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

    /// Hands on a cluster that is stored uncompressed: from its start, or rotated within its block
    /// by where it starts in the file (`interlaced`).
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
        let first = len.min(self.geometry.block_len().saturating_sub(skip));
        if runs.push(logical.start, first, RunFrom::Stored(stored.start.saturating_add(skip))).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if first == len {
            return Ok(ControlFlow::Continue(()));
        }
        let rest = logical.start.saturating_add(first)..logical.end;
        Ok(runs.push(rest.start, len_of(&rest), RunFrom::Stored(stored.start)))
    }

    /// Checks a cluster that is stored uncompressed. Returns its start within a block of the file,
    /// by which it is rotated if it is interlaced.
    fn check_plain(
        &self,
        place: Place,
        logical: &Range<u64>,
        stored: &Range<u64>,
        interlaced: bool,
    ) -> Result<u64> {
        let (len, stored_len) = (len_of(logical), len_of(stored));
        if len > stored_len {
            let allowed = crate::corruption::Allowed::AtMost(stored_len);
            let figure = "length of a cluster that is not compressed";
            return Err(Corruption::Figure { place, figure, found: len, allowed }.into());
        }
        let skip = self.geometry.in_block(logical.start);
        let first = len.min(self.geometry.block_len().saturating_sub(skip));
        let one_block = stored_len <= self.geometry.block_len() && skip.saturating_add(first) <= stored_len;
        if interlaced && !one_block {
            return Err(
                Corruption::Fault { place, fault: "an interlaced cluster that is not one block" }.into()
            );
        }
        Ok(skip)
    }
}

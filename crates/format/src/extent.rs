//! Runs of bytes of files, and their sources.

use crate::units::*;
use packfs_codec::{Algorithm, BlockRef};
use packfs_core::{len_of, range_at, u32_of};
use std::ops::Range;

/// A run of a file's bytes and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Start of the run in the file, in bytes.
    pub offset: u64,
    /// Its length in bytes; never 0.
    pub len: u64,
    /// Source of its bytes.
    pub from: ExtentFrom,
}

impl Extent {
    /// Returns the bytes of the file that it covers.
    pub fn range(&self) -> Range<u64> {
        range_at(self.offset, self.len)
    }

    /// Returns the part of it within `range` of the file, if it is not empty.
    pub(crate) fn within(self, range: &Range<u64>) -> Option<Extent> {
        let part = self.offset.max(range.start)..self.range().end.min(range.end);
        let cut = part.start.minus(self.offset);
        let from = match self.from {
            ExtentFrom::Hole => ExtentFrom::Hole,
            ExtentFrom::Stored(at) => ExtentFrom::Stored(end_of(at, cut)),
            ExtentFrom::Block { block, start } => {
                ExtentFrom::Block { block, start: end_of(start, u32_of(cut)) }
            }
        };
        (!part.is_empty()).then(|| Extent { offset: part.start, len: len_of(&part), from })
    }
}

/// Source of the bytes of an [`Extent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentFrom {
    /// Nowhere: zeros.
    Hole,
    /// From the image as they are, starting at this offset.
    Stored(u64),
    /// A slice of a decoded block, from `start` on for as long as the extent is.
    Block {
        /// The block.
        block: BlockRef,
        /// First byte within the decoded block.
        start: u32,
    },
}

/// A stored extent of a file, as reports of compression count it. Holes have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredExtent {
    /// Name of the codec, `none` for data that is not compressed.
    pub codec: &'static str,
    /// Address of the stored bytes: extents with the same one are stored once. `None` for bytes of
    /// this file only, stored with its metadata.
    pub place: Option<u64>,
    /// Stored length of the whole extent.
    pub stored_len: u64,
    /// Decoded length of the whole extent.
    pub decoded_len: u64,
    /// Bytes of it that belong to the file.
    pub used_len: u64,
}

impl StoredExtent {
    /// Returns the stored extent that a part of a file comes from; `None` for a hole.
    pub fn of(extent: &Extent) -> Option<StoredExtent> {
        let used_len = extent.len;
        match extent.from {
            ExtentFrom::Hole => None,
            ExtentFrom::Stored(at) => Some(StoredExtent {
                codec: "none",
                place: Some(at),
                stored_len: used_len,
                decoded_len: used_len,
                used_len,
            }),
            ExtentFrom::Block { block, .. } => Some(StoredExtent {
                codec: block.algorithm.map_or("none", Algorithm::name),
                place: Some(block.offset),
                stored_len: block.stored_len.into(),
                decoded_len: block.decoded_len.into(),
                used_len,
            }),
        }
    }
}

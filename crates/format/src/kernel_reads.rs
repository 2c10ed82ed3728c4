//! Reads of Linux's driver of a format for the bytes of a file, to predict their cost.

use crate::{Extent, ExtentFrom, InodeId};
use packfs_core::Result;
use std::ops::Range;

/// A piece of an image that a driver reads as a whole, identified by its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRead {
    /// Offset in the image, in bytes.
    pub offset: u64,
    /// Stored length.
    pub stored: u32,
    /// Bytes that are decoded, or copied from uncompressed data; 0 for pages that are used in
    /// place.
    pub decoded: u32,
}

/// A block that contains bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelBlock {
    /// The whole block.
    pub read: KernelRead,
    /// True if it is compressed.
    pub compressed: bool,
    /// The part of the file in it.
    pub range: Range<u64>,
    /// True if it contains bytes of other files, too.
    pub shared: bool,
    /// Offset of the part in the decoded packed stream, if it is there.
    pub tail_at: Option<u64>,
}

impl KernelBlock {
    /// Returns the block of an extent; `None` for a hole.
    pub fn of_extent(extent: &Extent) -> Option<KernelBlock> {
        let range = extent.range();
        let block = |read, compressed, shared| KernelBlock { read, compressed, range, shared, tail_at: None };
        let len = u32::try_from(extent.len).unwrap_or(u32::MAX);
        match extent.from {
            ExtentFrom::Hole => None,
            ExtentFrom::Stored(offset) => {
                Some(block(KernelRead { offset, stored: len, decoded: len }, false, false))
            }
            ExtentFrom::Block { block: found, start } => {
                let is_whole = start == 0 && extent.len >= u64::from(found.decoded_len);
                let (stored, decoded) = (found.stored_len, found.decoded_len);
                let read = KernelRead { offset: found.offset, stored, decoded };
                Some(block(read, found.algorithm.is_some(), !is_whole))
            }
        }
    }
}

/// Caching of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelCache {
    /// Every block is read by a separate request when it is needed, and decoded before the driver
    /// continues. A few remain decoded; the oldest is evicted first, used or not.
    Blocks {
        /// Number of cached metadata blocks.
        metadata: usize,
        /// Number of cached shared blocks.
        shared: usize,
        /// Bytes before a metadata block that contain its length, and are read first.
        header_len: u64,
        /// Smallest unit of a request, in bytes; the device's block may be longer.
        unit: u64,
        /// First Linux, major and minor, that caches pages of which a block used a part, if the
        /// device's blocks have the length of pages.
        edges_since: Option<(u16, u16)>,
    },
    /// Pages remain in the page cache. Blocks of a readahead window are requested together, while
    /// the previous window is decoded.
    Pages {
        /// Length of a page, in bytes.
        len: u64,
    },
}

/// Reads of a Linux driver, step by step.
///
/// Errors of all methods: those of reading the image.
pub trait KernelReads {
    /// Returns the caching of the driver.
    fn cache(&self) -> KernelCache;

    /// Returns the metadata read for an inode, including lookups that it causes.
    fn inode(&self, id: InodeId) -> Result<Vec<KernelRead>>;

    /// Returns the metadata read for a name in a directory, whose inode was read before.
    fn name(&self, dir: InodeId, name: &[u8]) -> Result<Vec<KernelRead>>;

    /// Returns the blocks of a file, in the order of its bytes.
    fn blocks(&self, id: InodeId) -> Result<Vec<KernelBlock>>;

    /// Returns the length of the stream of tails, decoded and stored; 0 without one.
    fn tails_len(&self) -> (u64, u64) {
        (0, 0)
    }
}

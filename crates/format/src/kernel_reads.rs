//! The way of Linux's driver of a format to the bytes of a file, for forecasts of how long it
//! takes.

use crate::{Extent, ExtentFrom, InodeId};
use packfs_core::Result;
use std::ops::Range;

/// A piece of an image that a driver reads as a whole; one at the same offset is the same piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRead {
    /// Place in the image, in bytes.
    pub offset: u64,
    /// Bytes that are stored.
    pub stored: u32,
    /// Bytes that are decoded, or copied from what is stored uncompressed; 0 for pages that are
    /// used in place.
    pub decoded: u32,
}

/// A block that holds bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelBlock {
    /// The whole block.
    pub read: KernelRead,
    /// True if it is compressed.
    pub compressed: bool,
    /// The part of the file that it holds.
    pub range: Range<u64>,
    /// True if it holds bytes of other files, too.
    pub shared: bool,
    /// Place of the part in the stream that tails of all files make up, decoded, if it lies there.
    pub tail_at: Option<u64>,
}

impl KernelBlock {
    /// Returns the block that an extent is in; none for a hole.
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

/// A driver's way to keep what it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelCache {
    /// Every block is read by a request of its own when it is needed, and decoded before the driver
    /// goes on. A few stay, decoded; the one that came first is dropped first, used or not.
    Blocks {
        /// Blocks of metadata that stay.
        metadata: usize,
        /// Blocks that files share that stay.
        shared: usize,
        /// Bytes before a block of metadata that tell its length, and are read first.
        header_len: u64,
        /// Least unit of a request, in bytes; the device's block may be longer.
        unit: u64,
        /// First Linux, major and minor, that keeps pages of which a block took a part, where the
        /// device's blocks are as long as pages.
        edges_since: Option<(u16, u16)>,
    },
    /// Pages stay in the page cache. Blocks of a window of readahead are asked for together, while
    /// the window before is decoded.
    Pages {
        /// Length of a page, in bytes.
        len: u64,
    },
}

/// Reads of a Linux driver, step by step.
///
/// Errors of all methods: those of reading the image.
pub trait KernelReads {
    /// Returns the way to keep what was read.
    fn cache(&self) -> KernelCache;

    /// Returns the metadata for an inode, and for what is looked up with it.
    fn inode(&self, id: InodeId) -> Result<Vec<KernelRead>>;

    /// Returns the metadata for a name in a directory, whose inode was read before.
    fn name(&self, dir: InodeId, name: &[u8]) -> Result<Vec<KernelRead>>;

    /// Returns the blocks of a file, in the order of its bytes.
    fn blocks(&self, id: InodeId) -> Result<Vec<KernelBlock>>;

    /// Returns the length of the stream of tails, decoded and stored; 0 without one.
    fn tails_len(&self) -> (u64, u64) {
        (0, 0)
    }
}

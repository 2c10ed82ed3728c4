//! Checked records of an image: inodes, and prefixes of attribute names.

use crate::corruption::Place;
use crate::disk::*;
use packfs_core::{FileType, Timestamp};
use packfs_format::units::*;
use std::mem::size_of;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One run of blocks.
    FlatPlain,
    /// One run of blocks and an inline tail.
    FlatInline,
    /// An index of 8 bytes for each logical cluster, or encoded extents.
    CompressedFull,
    /// An index of 4 or 2 bytes for each logical cluster.
    CompressedCompact,
    ChunkBased,
}

impl Layout {
    pub(crate) fn from_number(number: u16) -> Option<Layout> {
        Some(match number {
            EROFS_INODE_FLAT_PLAIN => Layout::FlatPlain,
            EROFS_INODE_COMPRESSED_FULL => Layout::CompressedFull,
            EROFS_INODE_FLAT_INLINE => Layout::FlatInline,
            EROFS_INODE_COMPRESSED_COMPACT => Layout::CompressedCompact,
            EROFS_INODE_CHUNK_BASED => Layout::ChunkBased,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawInode {
    pub(crate) nid: u64,
    pub(crate) place: Place,
    pub(crate) at: u64,
    pub(crate) extended: bool,
    pub(crate) layout: Layout,
    pub(crate) file_type: FileType,
    pub(crate) mode: u16,
    pub(crate) size: u64,
    pub(crate) nlink: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: Timestamp,
    pub(crate) ino: u32,
    /// Meaning depends on the layout.
    pub(crate) i_u: u32,
    /// `i_u` with its upper bits: the number of compressed blocks.
    pub(crate) block_word: u64,
    /// First block of a flat file; `None` for a file that is one hole.
    pub(crate) start_block: Option<u64>,
    /// Set for a directory without a `.` entry.
    pub(crate) dot_omitted: bool,
    pub(crate) xattr_len: u64,
}

impl RawInode {
    pub(crate) fn len(&self) -> u64 {
        if self.extended { size_of::<InodeExtended>() as u64 } else { size_of::<InodeCompact>() as u64 }
    }

    pub(crate) fn xattrs_at(&self) -> u64 {
        self.at.plus(self.len())
    }

    /// End of its xattrs, where an index or inline data starts.
    pub(crate) fn tail_at(&self) -> u64 {
        self.xattrs_at().plus(self.xattr_len)
    }

    pub(crate) fn is_compressed(&self) -> bool {
        matches!(self.layout, Layout::CompressedFull | Layout::CompressedCompact)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LongPrefix {
    pub(crate) base_index: u8,
    /// The part of the prefix after the base.
    pub(crate) infix: Vec<u8>,
}

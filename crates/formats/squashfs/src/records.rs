//! Records of each version of SquashFS, and their decoding.
//!
//! All versions have the same structures: inodes in one table, listings of runs of entries in
//! another, size words after the inodes of files, fragments in a lookup table. The widths of their
//! fields differ. [`Records`] is that difference; readers of images are written once, on top of it.

use crate::block_index::BlockIndex;
use crate::blocks::Metadata;
use crate::cursor::Cursor;
use crate::place::Place;
use crate::raw::RawInode;
use crate::stored::Region;
use crate::table::Table;
use packfs_codec::Algorithm;
use packfs_core::Result;
use packfs_format::{Inode, InodeId};
use std::ops::Range;

/// Longest name that the format can store; Linux limits names to 255.
pub(crate) const SQUASHFS_NAME_LEN: usize = 256;
/// Maximum entries of a run.
pub(crate) const SQUASHFS_DIR_COUNT: u32 = 256;
/// Fragment of a file without a tail in a fragment.
pub(crate) const SQUASHFS_INVALID_FRAG: u32 = u32::MAX;
/// Bit of the size word of a data block or fragment: stored uncompressed. The lower 24 bits are its
/// stored length.
pub(crate) const SQUASHFS_COMPRESSED_BIT_BLOCK: u32 = 1 << 24;

/// Validated locations common to all versions.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) algorithm: Algorithm,
    /// A power of two, 512 bytes to 1 MiB.
    pub(crate) block_len: u32,
    /// Permitted range of blocks of files and fragments.
    pub(crate) data: Range<u64>,
    pub(crate) inodes: Region,
    pub(crate) directories: Region,
    pub(crate) fragments: Option<Table>,
    /// Inodes by number, for NFS.
    pub(crate) export: Option<Table>,
    pub(crate) root: InodeId,
    pub(crate) inode_count: u32,
}

impl Layout {
    pub(crate) fn fragment_count(&self) -> u32 {
        self.fragments.as_ref().map_or(0, |table| table.count)
    }
}

/// Lengths of a version's records, and its rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) inode_len_min: u64,
    pub(crate) size_word_len: u64,
    pub(crate) run_header_len: u32,
    pub(crate) entry_len: u32,
    /// Length of an index entry without its name.
    pub(crate) index_entry_len: u32,
    /// Difference between a directory's size and its listing's length, for `.` and `..`.
    pub(crate) dir_size_extra: u32,
    /// True if inodes of all types have numbers and link counts.
    pub(crate) has_numbers: bool,
    /// True if listings are sorted by bytes of names.
    pub(crate) is_sorted: bool,
    /// True if a size word of 0 is a hole.
    pub(crate) has_holes: bool,
}

/// The header of a run: entries whose inodes are in one metadata block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunHeader {
    pub(crate) count: u32,
    /// Metadata block of the inodes, relative to the inode table.
    pub(crate) start_block: u32,
    /// Base of the entries' inode numbers.
    pub(crate) inode_number: u32,
}

/// A directory entry without its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryHead {
    /// Offset of the inode within the header's block, decoded.
    pub(crate) offset: u16,
    /// Difference from the header's inode number.
    pub(crate) inode_number: i16,
    /// One of the seven basic types.
    pub(crate) inode_type: u16,
    pub(crate) name_len: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexHead {
    pub(crate) index: u32,
    /// Metadata block of the header, relative to the directory table.
    pub(crate) start_block: u32,
    pub(crate) name_len: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FragmentRow {
    pub(crate) start_block: u64,
    pub(crate) size: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredData {
    pub(crate) len: u32,
    pub(crate) compressed: bool,
}

impl StoredData {
    pub(crate) fn of_word(word: u32) -> Self {
        let compressed = word & SQUASHFS_COMPRESSED_BIT_BLOCK == 0;
        StoredData { len: word & !SQUASHFS_COMPRESSED_BIT_BLOCK, compressed }
    }
}

pub(crate) fn size_word(stored_len: u32, compressed: bool) -> u32 {
    if stored_len == 0 || compressed { stored_len } else { stored_len | SQUASHFS_COMPRESSED_BIT_BLOCK }
}

/// An opened image with version-specific records.
///
/// Errors of all methods: `Corrupt` if a record violates the rules of its version, `Io` if it
/// cannot be read.
pub(crate) trait Records {
    fn layout(&self) -> &Layout;

    fn metadata(&self) -> &Metadata;

    /// Checkpoints in the size words of large files.
    fn block_index(&self) -> &BlockIndex;

    fn shape(&self) -> Shape;

    /// Decodes the inode at the cursor; the caller checks its references.
    fn parse_inode(&self, cursor: &mut Cursor<'_>) -> Result<RawInode>;

    /// Converts an inode to the type of the frame.
    fn plain_inode(&self, id: InodeId, raw: &RawInode) -> Result<Inode>;

    fn run_header(&self, cursor: &mut Cursor<'_>) -> Result<RunHeader>;

    /// Reads the directory entry at the cursor, up to its name.
    fn entry_head(&self, cursor: &mut Cursor<'_>) -> Result<EntryHead>;

    /// Reads the index entry at the cursor, up to its name.
    fn index_head(&self, cursor: &mut Cursor<'_>) -> Result<IndexHead>;

    /// Reads the size word at the cursor, in the form of versions since 2.0.
    fn size_word(&self, cursor: &mut Cursor<'_>) -> Result<u32>;

    /// Checks the size word, at `place`, of a block that is not a hole.
    fn stored_data(&self, word: u32, place: Place) -> Result<StoredData>;

    /// Returns a row of the fragment table; `None` if it has fewer.
    fn fragment_row(&self, index: u32) -> Result<Option<FragmentRow>>;

    fn each_fragment_row(&self, visit: impl FnMut(u32, FragmentRow) -> Result<()>) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_is_the_word_zero_even_though_nothing_is_compressed() {
        assert_eq!(size_word(0, false), 0);
        assert_eq!(size_word(5, false), 0x100_0005);
        assert_eq!(size_word(5, true), 5);
    }

    #[test]
    fn size_words_decode_to_their_input() {
        for (len, compressed) in [(1, true), (1, false), (1 << 20, false), (0xff_ffff, true)] {
            assert_eq!(StoredData::of_word(size_word(len, compressed)), StoredData { len, compressed });
        }
    }
}

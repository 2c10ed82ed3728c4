//! Records of each generation of SquashFS, and their decoding.
//!
//! All generations have the same structures: inodes in one table, listings of runs of entries in
//! another, size words after the inodes of files, fragments in a lookup table. The widths of their
//! fields differ. [`Records`] is that difference; readers of images are written once, upon it.

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

/// Longest name, in bytes, that the format can hold; Linux takes 255.
pub(crate) const SQUASHFS_NAME_LEN: usize = 256;
/// Most entries below one directory header.
pub(crate) const SQUASHFS_DIR_COUNT: u32 = 256;
/// A file whose tail is in no fragment.
pub(crate) const SQUASHFS_INVALID_FRAG: u32 = u32::MAX;
/// Bit of the size word of a data block or fragment: stored uncompressed. The 24 bits below are its
/// stored length.
pub(crate) const SQUASHFS_COMPRESSED_BIT_BLOCK: u32 = 1 << 24;

/// Validated locations that images of all generations have.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Codec of metadata and data.
    pub(crate) algorithm: Algorithm,
    /// A power of two, 512 bytes to 1 MiB.
    pub(crate) block_len: u32,
    /// Range in which blocks of files and fragments may lie.
    pub(crate) data: Range<u64>,
    /// The inode table.
    pub(crate) inodes: Region,
    /// The directory table.
    pub(crate) directories: Region,
    /// The fragment table, if there are fragments.
    pub(crate) fragments: Option<Table>,
    /// The table of inodes by number, for NFS.
    pub(crate) export: Option<Table>,
    /// The root directory.
    pub(crate) root: InodeId,
    /// Number of inodes in the superblock.
    pub(crate) inode_count: u32,
}

impl Layout {
    /// Returns the number of fragments.
    pub(crate) fn fragment_count(&self) -> u32 {
        self.fragments.as_ref().map_or(0, |table| table.count)
    }
}

/// Lengths of a generation's records, and its rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Fewest bytes that an inode takes.
    pub(crate) inode_len_min: u64,
    /// Bytes of a size word.
    pub(crate) size_word_len: u64,
    /// Bytes of the header of a run of directory entries.
    pub(crate) run_header_len: u32,
    /// Bytes of a directory entry without its name.
    pub(crate) entry_len: u32,
    /// Bytes of an entry of a directory's index without its name.
    pub(crate) index_entry_len: u32,
    /// A directory's size is its listing's length plus this, standing in for `.` and `..`.
    pub(crate) dir_size_extra: u32,
    /// True if inodes of all types have numbers and link counts.
    pub(crate) has_numbers: bool,
    /// True if listings are in byte order of their names.
    pub(crate) is_sorted: bool,
    /// True if a size word of 0 is a hole.
    pub(crate) has_holes: bool,
}

/// The header of a run of directory entries whose inodes lie in one metadata block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunHeader {
    /// Entries of the run.
    pub(crate) count: u32,
    /// Metadata block of their inodes, relative to the inode table.
    pub(crate) start_block: u32,
    /// Base of the entries' inode numbers.
    pub(crate) inode_number: u32,
}

/// A directory entry without its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryHead {
    /// Offset of the inode within the header's block, decoded.
    pub(crate) offset: u16,
    /// Inode number, less the header's.
    pub(crate) inode_number: i16,
    /// One of the seven basic types.
    pub(crate) inode_type: u16,
    /// Bytes of the name.
    pub(crate) name_len: u32,
}

/// An entry of a directory's index without its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexHead {
    /// Offset of a header in the listing.
    pub(crate) index: u32,
    /// Metadata block that holds the header, relative to the directory table.
    pub(crate) start_block: u32,
    /// Bytes of the name.
    pub(crate) name_len: u32,
}

/// A row of the fragment table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FragmentRow {
    /// Start of the fragment in the image.
    pub(crate) start_block: u64,
    /// Its size word.
    pub(crate) size: u32,
}

/// A size word taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredData {
    /// Stored length in bytes.
    pub(crate) len: u32,
    /// True if it is compressed.
    pub(crate) compressed: bool,
}

impl StoredData {
    /// Decodes a size word.
    pub(crate) fn of_word(word: u32) -> Self {
        let compressed = word & SQUASHFS_COMPRESSED_BIT_BLOCK == 0;
        StoredData { len: word & !SQUASHFS_COMPRESSED_BIT_BLOCK, compressed }
    }
}

/// The size word of a data block or fragment; a hole is 0.
pub(crate) fn size_word(stored_len: u32, compressed: bool) -> u32 {
    if stored_len == 0 || compressed { stored_len } else { stored_len | SQUASHFS_COMPRESSED_BIT_BLOCK }
}

/// An opened image whose records can be taken apart.
///
/// Errors of all methods: `Corrupt` where a record breaks the rules of its generation, `Io` where
/// it cannot be read.
pub(crate) trait Records {
    /// Returns the locations of structures.
    fn layout(&self) -> &Layout;

    /// Returns the decoder of metadata.
    fn metadata(&self) -> &Metadata;

    /// Returns the checkpoints in the size words of large files.
    fn block_index(&self) -> &BlockIndex;

    /// Returns the lengths of records.
    fn shape(&self) -> Shape;

    /// Takes the inode at the cursor apart; what it refers to is checked by the caller.
    fn parse_inode(&self, cursor: &mut Cursor<'_>) -> Result<RawInode>;

    /// Returns an inode in the words of the frame.
    fn plain_inode(&self, id: InodeId, raw: &RawInode) -> Result<Inode>;

    /// The header of a run at the cursor.
    fn run_header(&self, cursor: &mut Cursor<'_>) -> Result<RunHeader>;

    /// The directory entry at the cursor, which then stands at its name.
    fn entry_head(&self, cursor: &mut Cursor<'_>) -> Result<EntryHead>;

    /// The index entry at the cursor, which then stands at its name.
    fn index_head(&self, cursor: &mut Cursor<'_>) -> Result<IndexHead>;

    /// The size word at the cursor, as versions from 2.0 on would say it.
    fn size_word(&self, cursor: &mut Cursor<'_>) -> Result<u32>;

    /// Checks the size word, at `place`, of what is no hole.
    fn stored_data(&self, word: u32, place: Place) -> Result<StoredData>;

    /// A row of the fragment table; `None` if it has fewer.
    fn fragment_row(&self, index: u32) -> Result<Option<FragmentRow>>;

    /// Every row of the fragment table, in order.
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

//! Raw structures of SquashFS 4.0, named as in `fs/squashfs/squashfs_fs.h` of Linux.
//!
//! Owns layout, numbers, and bits; every struct is little-endian, unaligned, and its size is
//! asserted. The reader checks which values are allowed.

use crate::{Endian, HeaderForm, SQUASHFS_SOCKET_TYPE, size_word};
use packfs_format::disk;
use zerocopy::little_endian::{I16, I32, U16, U32, U64};

/// `hsqs`, at offset 0 of every image.
pub(crate) const SQUASHFS_MAGIC: u32 = 0x7371_7368;
/// `sqsh`: a big-endian image, which only versions before 4.0 had.
pub(crate) const SQUASHFS_MAGIC_SWAP: u32 = 0x6873_7173;
/// `HSQS`: an image that was written to a pipe. All else of its first superblock is zero; the valid
/// one, with [`SQUASHFS_MAGIC`], is the last 96 bytes of the file (squashfs-tools 4.7.3 and later).
pub(crate) const SQUASHFS_MAGIC_STREAMED: u32 = 0x5351_5348;
/// `shsq`: used by sqlzma and vendors instead of [`SQUASHFS_MAGIC`].
pub(crate) const SQUASHFS_MAGIC_VENDOR: u32 = 0x7173_6873;
/// Magics of images of any byte order and version.
pub(crate) const MAGICS: [u32; 4] =
    [SQUASHFS_MAGIC, SQUASHFS_MAGIC_SWAP, SQUASHFS_MAGIC_STREAMED, SQUASHFS_MAGIC_VENDOR];
/// Offset of the major version, in every version.
pub(crate) const MAJOR_AT: u64 = 28;
/// Versions that are other formats with the same magic.
pub(crate) const OLD_MAJORS: std::ops::RangeInclusive<u16> = 1..=3;

pub(crate) const SQUASHFS_MAJOR: u16 = 4;
pub(crate) const SQUASHFS_MINOR: u16 = 0;

pub(crate) const HEADER_FORM: HeaderForm = HeaderForm { endian: Endian::Little, marked: false };
/// Length of the word before every metadata block.
pub(crate) const METADATA_HEADER_LEN: usize = HEADER_FORM.header_len();

pub(crate) const SQUASHFS_FILE_MIN_SIZE: u32 = 4096;
pub(crate) const SQUASHFS_FILE_MAX_SIZE: u32 = 1 << 20;

/// Start of a missing table.
pub(crate) const SQUASHFS_INVALID_BLK: u64 = u64::MAX;
/// Index of an inode without extended attributes.
pub(crate) const SQUASHFS_INVALID_XATTR: u32 = u32::MAX;

/// Difference between a directory's `file_size` and its listing's length, for `.` and `..`.
pub(crate) const DIR_SIZE_EXTRA: u32 = 3;

// Flags of the superblock, by bit number. Readers use only COMP_OPT; the others are for appending
// and for users.
pub(crate) const SQUASHFS_NOI: u16 = 0;
pub(crate) const SQUASHFS_NOD: u16 = 1;
pub(crate) const SQUASHFS_CHECK: u16 = 2;
pub(crate) const SQUASHFS_NOF: u16 = 3;
pub(crate) const SQUASHFS_NO_FRAG: u16 = 4;
pub(crate) const SQUASHFS_ALWAYS_FRAG: u16 = 5;
pub(crate) const SQUASHFS_DUPLICATE: u16 = 6;
pub(crate) const SQUASHFS_EXPORT: u16 = 7;
pub(crate) const SQUASHFS_NOX: u16 = 8;
pub(crate) const SQUASHFS_NO_XATTR: u16 = 9;
pub(crate) const SQUASHFS_COMP_OPT: u16 = 10;
pub(crate) const SQUASHFS_NOID: u16 = 11;

/// Extended inode types are numbered after the seven basic ones; directory entries only use the
/// latter.
pub(crate) const EXTENDED_TYPES: u16 = SQUASHFS_SOCKET_TYPE;

// Prefixes of extended attributes' names, and the bit of values that are stored elsewhere.
pub(crate) const SQUASHFS_XATTR_USER: u16 = 0;
pub(crate) const SQUASHFS_XATTR_TRUSTED: u16 = 1;
pub(crate) const SQUASHFS_XATTR_SECURITY: u16 = 2;
pub(crate) const SQUASHFS_XATTR_VALUE_OOL: u16 = 256;
pub(crate) const SQUASHFS_XATTR_PREFIX_MASK: u16 = 0xff;

// LZ4 options.
pub(crate) const LZ4_LEGACY: u32 = 1;
pub(crate) const LZ4_HC: u32 = 1;
/// squashfs-tools 4.7.6: a third word follows, the level (with [`LZ4_HC`]) or the acceleration.
pub(crate) const LZ4_NON_DEFAULT: u32 = 2;

disk! {
    /// The first 96 bytes of an image.
    struct SuperBlock (96) {
        s_magic: U32,
        inodes: U32,
        mkfs_time: U32,
        block_size: U32,
        fragments: U32,
        compression: U16,
        block_log: U16,
        flags: U16,
        no_ids: U16,
        s_major: U16,
        s_minor: U16,
        /// An [`crate::InodeRef`].
        root_inode: U64,
        bytes_used: U64,
        id_table_start: U64,
        xattr_id_table_start: U64,
        inode_table_start: U64,
        directory_table_start: U64,
        fragment_table_start: U64,
        lookup_table_start: U64,
    }

    /// Start of every inode; one of the `*Inode` bodies below follows.
    struct InodeBase (16) {
        inode_type: U16,
        mode: U16,
        /// Index into the id table.
        uid: U16,
        /// Index into the id table.
        guid: U16,
        mtime: U32,
        inode_number: U32,
    }

    /// Body of a directory (type 1).
    struct DirInode (16) {
        /// Metadata block of the listing, relative to the directory table.
        start_block: U32,
        nlink: U32,
        file_size: U16,
        /// Start of the listing within that block, decoded.
        offset: U16,
        parent_inode: U32,
    }

    /// Body of an extended directory (type 8); `i_count` [`DirIndex`] with names follow.
    struct LDirInode (24) {
        nlink: U32,
        file_size: U32,
        start_block: U32,
        parent_inode: U32,
        i_count: U16,
        offset: U16,
        xattr: U32,
    }

    /// Index entry of an extended directory; `size + 1` bytes of name follow.
    struct DirIndex (12) {
        /// Offset within the listing.
        index: U32,
        /// Metadata block of the header, relative to the directory table.
        start_block: U32,
        size: U32,
    }

    /// Body of a regular file (type 2); a size word for each block follows.
    struct RegInode (16) {
        start_block: U32,
        fragment: U32,
        /// Offset of the tail within the fragment, decoded.
        offset: U32,
        file_size: U32,
    }

    /// Body of an extended regular file (type 9); a size word for each block follows.
    struct LRegInode (40) {
        start_block: U64,
        file_size: U64,
        /// Bytes in holes.
        sparse: U64,
        nlink: U32,
        fragment: U32,
        offset: U32,
        xattr: U32,
    }

    /// Body of a symbolic link (types 3 and 10); the target follows, then for type 10 its xattr
    /// index.
    struct SymlinkInode (8) {
        nlink: U32,
        symlink_size: U32,
    }

    /// Body of a device (types 4 and 5).
    struct DevInode (8) {
        nlink: U32,
        /// Device number in the encoding of the kernel's `new_encode_dev`.
        rdev: U32,
    }

    /// Body of an extended device (types 11 and 12).
    struct LDevInode (12) {
        nlink: U32,
        rdev: U32,
        xattr: U32,
    }

    /// Body of a fifo or socket (types 6 and 7).
    struct IpcInode (4) {
        nlink: U32,
    }

    /// Body of an extended fifo or socket (types 13 and 14).
    struct LIpcInode (8) {
        nlink: U32,
        xattr: U32,
    }

    /// Header of a run of directory entries whose inodes are in the same metadata block.
    struct DirHeader (12) {
        /// Number of entries, less one.
        count: U32,
        /// Metadata block of the inodes, relative to the inode table.
        start_block: U32,
        /// Base of the entries' inode numbers.
        inode_number: U32,
    }

    /// A directory entry; `size + 1` bytes of name follow.
    struct DirEntry (8) {
        /// Offset of the inode within the header's block, decoded.
        offset: U16,
        /// Difference from the header's inode number.
        inode_number: I16,
        /// One of the seven basic types.
        r#type: U16,
        size: U16,
    }

    /// Row of the fragment table.
    struct FragmentEntry (16) {
        start_block: U64,
        size: U32,
        unused: U32,
    }

    /// Header of an extended attribute; `size` bytes of name follow, without prefix, then
    /// [`XattrVal`].
    struct XattrEntry (4) {
        r#type: U16,
        size: U16,
    }

    /// Header of a value; `vsize` bytes follow. With [`SQUASHFS_XATTR_VALUE_OOL`] those are 8, a
    /// reference into the attributes' metadata like [`crate::InodeRef`], to another `XattrVal` with
    /// the value.
    struct XattrVal (4) {
        vsize: U32,
    }

    /// Row of the table of attribute sets.
    struct XattrId (16) {
        /// Start of the set, as block and offset relative to the attributes' metadata.
        xattr: U64,
        count: U32,
        /// Bytes of all full names with a NUL each, and all values, for `listxattr` and quotas.
        size: U32,
    }

    /// Header of the xattr id table; the positions of its metadata blocks follow.
    struct XattrIdTable (16) {
        xattr_table_start: U64,
        xattr_ids: U32,
        unused: U32,
    }

    /// Options of gzip.
    struct GzipOptions (8) {
        compression_level: U32,
        window_size: U16,
        /// Bits in the order of `ZlibStrategy`.
        strategy: U16,
    }

    /// Options of lzo.
    struct LzoOptions (8) {
        /// 0: `1`, 1: `1_11`, 2: `1_12`, 3: `1_15`, 4: `999`.
        algorithm: U32,
        compression_level: U32,
    }

    /// Options of xz.
    struct XzOptions (8) {
        dictionary_size: U32,
        /// Bits in the order of `BranchFilter::ALL`.
        flags: U32,
    }

    /// Options of lz4; with [`LZ4_NON_DEFAULT`] a word follows.
    struct Lz4Options (8) {
        version: U32,
        flags: U32,
    }

    /// Options of zstd.
    struct ZstdOptions (4) {
        compression_level: I32,
    }
}

/// Encodes the word before a metadata block.
pub(crate) fn metadata_header(stored_len: u16, compressed: bool) -> U16 {
    U16::from_bytes(HEADER_FORM.word(stored_len, compressed))
}

/// Encodes the size word of a data block or fragment; 0 is a hole.
pub(crate) fn block_word(stored_len: u32, compressed: bool) -> U32 {
    U32::new(size_word(stored_len, compressed))
}

//! Raw structures of EROFS, named as in `erofs_fs.h`.
//!
//! Owns layout, numbers, and bits; every struct is little-endian, unaligned, and its size is
//! asserted. The reader checks which values are allowed. A union of the header is one field here,
//! named after the union; its comment states the meanings. Source: `fs/erofs/erofs_fs.h` of Linux,
//! and that of erofs-utils 1.9.
#![allow(dead_code, reason = "read side and pack side each use a part")]

use packfs_format::{disk, units::*};
use zerocopy::little_endian::{U16, U32, U64};

pub(crate) const EROFS_SUPER_MAGIC_V1: u32 = 0xE0F5_E1E2;
pub(crate) const EROFS_SUPER_OFFSET: u64 = 1024;
/// Length of the superblock without extension slots; [`SuperBlock`] is this and the first slot.
pub(crate) const SUPER_BLOCK_LEN: usize = 128;
pub(crate) const EROFS_SB_EXTSLOT_SIZE: usize = 16;
/// Length of a volume name; the kernel requires a NUL in it.
pub(crate) const VOLUME_NAME_LEN: usize = 16;

// Compatible features.
pub(crate) const EROFS_FEATURE_COMPAT_SB_CHKSUM: u32 = 0x1;
pub(crate) const EROFS_FEATURE_COMPAT_MTIME: u32 = 0x2;
pub(crate) const EROFS_FEATURE_COMPAT_XATTR_FILTER: u32 = 0x4;
pub(crate) const EROFS_FEATURE_COMPAT_SHARED_EA_IN_METABOX: u32 = 0x8;
pub(crate) const EROFS_FEATURE_COMPAT_PLAIN_XATTR_PFX: u32 = 0x10;
pub(crate) const EROFS_FEATURE_COMPAT_ISHARE_XATTRS: u32 = 0x20;

// Incompatible features. Some bits have two names, because they were introduced together.
pub(crate) const EROFS_FEATURE_INCOMPAT_LZ4_0PADDING: u32 = 0x1;
pub(crate) const EROFS_FEATURE_INCOMPAT_COMPR_CFGS: u32 = 0x2;
pub(crate) const EROFS_FEATURE_INCOMPAT_BIG_PCLUSTER: u32 = 0x2;
pub(crate) const EROFS_FEATURE_INCOMPAT_CHUNKED_FILE: u32 = 0x4;
pub(crate) const EROFS_FEATURE_INCOMPAT_DEVICE_TABLE: u32 = 0x8;
pub(crate) const EROFS_FEATURE_INCOMPAT_COMPR_HEAD2: u32 = 0x8;
pub(crate) const EROFS_FEATURE_INCOMPAT_ZTAILPACKING: u32 = 0x10;
pub(crate) const EROFS_FEATURE_INCOMPAT_FRAGMENTS: u32 = 0x20;
pub(crate) const EROFS_FEATURE_INCOMPAT_DEDUPE: u32 = 0x20;
pub(crate) const EROFS_FEATURE_INCOMPAT_XATTR_PREFIXES: u32 = 0x40;
pub(crate) const EROFS_FEATURE_INCOMPAT_48BIT: u32 = 0x80;
pub(crate) const EROFS_FEATURE_INCOMPAT_METABOX: u32 = 0x100;
/// All incompatible bits.
pub(crate) const EROFS_ALL_FEATURE_INCOMPAT: u32 = (EROFS_FEATURE_INCOMPAT_METABOX << 1) - 1;

/// A feature or algorithm: bit or number, name, and first mainline kernel (major, minor) with it.
pub(crate) type KernelRow = (u32, &'static str, (u16, u16));

/// Incompatible features. A kernel without one of them refuses to mount.
pub(crate) const INCOMPAT_ROWS: [KernelRow; 9] = [
    (EROFS_FEATURE_INCOMPAT_LZ4_0PADDING, "0padding", (5, 4)),
    (EROFS_FEATURE_INCOMPAT_COMPR_CFGS, "compr_cfgs,big_pcluster", (5, 13)),
    (EROFS_FEATURE_INCOMPAT_CHUNKED_FILE, "chunked_file", (5, 15)),
    (EROFS_FEATURE_INCOMPAT_DEVICE_TABLE, "device_table,compr_head2", (5, 16)),
    (EROFS_FEATURE_INCOMPAT_ZTAILPACKING, "ztailpacking", (5, 17)),
    (EROFS_FEATURE_INCOMPAT_FRAGMENTS, "fragments,dedupe", (6, 1)),
    (EROFS_FEATURE_INCOMPAT_XATTR_PREFIXES, "xattr_prefixes", (6, 4)),
    (EROFS_FEATURE_INCOMPAT_48BIT, "48bit", (6, 15)),
    (EROFS_FEATURE_INCOMPAT_METABOX, "metabox", (6, 17)),
];
/// Compatible features, with the first kernel that uses them.
pub(crate) const COMPAT_ROWS: [KernelRow; 6] = [
    (EROFS_FEATURE_COMPAT_SB_CHKSUM, "sb_csum", (5, 4)),
    (EROFS_FEATURE_COMPAT_MTIME, "mtime", (5, 13)),
    (EROFS_FEATURE_COMPAT_XATTR_FILTER, "xattr_filter", (6, 6)),
    (EROFS_FEATURE_COMPAT_SHARED_EA_IN_METABOX, "shared_ea_in_metabox", (6, 17)),
    (EROFS_FEATURE_COMPAT_PLAIN_XATTR_PFX, "plain_xattr_pfx", (6, 18)),
    (EROFS_FEATURE_COMPAT_ISHARE_XATTRS, "ishare_xattrs", (7, 0)),
];
/// Algorithms. Any bit in `available_compr_algs` that a kernel lacks makes it refuse the mount.
pub(crate) const ALGORITHM_ROWS: [KernelRow; 4] = [
    (Z_EROFS_COMPRESSION_LZ4 as u32, "lz4", (5, 4)),
    (Z_EROFS_COMPRESSION_LZMA as u32, "lzma", (5, 16)),
    (Z_EROFS_COMPRESSION_DEFLATE as u32, "deflate", (6, 6)),
    (Z_EROFS_COMPRESSION_ZSTD as u32, "zstd", (6, 10)),
];

/// Base-2 logarithm of the smallest block.
pub(crate) const BLKSZBITS_MIN: u8 = 9;
/// Base-2 logarithm of the largest block: that of the largest page of any kernel.
pub(crate) const BLKSZBITS_MAX: u8 = 16;

// Data layouts, bits 1 to 3 of `i_format`.
pub(crate) const EROFS_INODE_FLAT_PLAIN: u16 = 0;
pub(crate) const EROFS_INODE_COMPRESSED_FULL: u16 = 1;
pub(crate) const EROFS_INODE_FLAT_INLINE: u16 = 2;
pub(crate) const EROFS_INODE_COMPRESSED_COMPACT: u16 = 3;
pub(crate) const EROFS_INODE_CHUNK_BASED: u16 = 4;

// Bits of `i_format`.
/// Bit 0: [`InodeExtended`] instead of [`InodeCompact`].
pub(crate) const EROFS_I_VERSION_BIT: u16 = 0;
pub(crate) const EROFS_INODE_LAYOUT_COMPACT: u16 = 0;
pub(crate) const EROFS_INODE_LAYOUT_EXTENDED: u16 = 1;
/// Bits 1 to 3: the data layout.
pub(crate) const EROFS_I_DATALAYOUT_BIT: u16 = 1;
pub(crate) const EROFS_I_DATALAYOUT_MASK: u16 = 0x7;
/// Inodes other than directories in the compact form: the link count is 1, and `i_nb` contains the
/// upper bits of a block number.
pub(crate) const EROFS_I_NLINK_1_BIT: u16 = 4;
/// Directories: `.` is omitted.
pub(crate) const EROFS_I_DOT_OMITTED_BIT: u16 = 4;
pub(crate) const EROFS_I_ALL: u16 = (1 << (EROFS_I_NLINK_1_BIT + 1)) - 1;

/// Logarithm of the alignment of inodes, which is the unit of node ids.
pub(crate) const ISLOTBITS: u32 = 5;

// Chunk format, the lower 16 bits of a chunk-based inode's `i_u`.
/// Base-2 logarithm of a chunk's length in blocks.
pub(crate) const EROFS_CHUNK_FORMAT_BLKBITS_MASK: u16 = 0x1f;
/// [`ChunkIndex`] rows instead of 4-byte block numbers.
pub(crate) const EROFS_CHUNK_FORMAT_INDEXES: u16 = 0x20;
pub(crate) const EROFS_CHUNK_FORMAT_48BIT: u16 = 0x40;
pub(crate) const EROFS_CHUNK_FORMAT_ALL: u16 = (EROFS_CHUNK_FORMAT_48BIT << 1) - 1;
/// Length of a row with a block number only.
pub(crate) const EROFS_BLOCK_MAP_ENTRY_SIZE: u64 = 4;
/// Block number of a hole: all bits set.
pub(crate) const EROFS_NULL_ADDR_32: u32 = u32::MAX;
/// The same for numbers of 48 bits.
pub(crate) const EROFS_NULL_ADDR_48: u64 = (1 << 48) - 1;

/// Bit of a nid: the inode is in the metabox, at an offset from its start.
pub(crate) const EROFS_DIRENT_NID_METABOX_BIT: u32 = 63;
pub(crate) const EROFS_DIRENT_NID_MASK: u64 = (1 << EROFS_DIRENT_NID_METABOX_BIT) - 1;

// Types in directory entries.
pub(crate) const EROFS_FT_UNKNOWN: u8 = 0;
pub(crate) const EROFS_FT_REG_FILE: u8 = 1;
pub(crate) const EROFS_FT_DIR: u8 = 2;
pub(crate) const EROFS_FT_CHRDEV: u8 = 3;
pub(crate) const EROFS_FT_BLKDEV: u8 = 4;
pub(crate) const EROFS_FT_FIFO: u8 = 5;
pub(crate) const EROFS_FT_SOCK: u8 = 6;
pub(crate) const EROFS_FT_SYMLINK: u8 = 7;

/// Longest name in a directory.
pub(crate) const EROFS_NAME_LEN: usize = 255;

// Prefixes of extended attributes' names.
pub(crate) const EROFS_XATTR_INDEX_USER: u8 = 1;
pub(crate) const EROFS_XATTR_INDEX_POSIX_ACL_ACCESS: u8 = 2;
pub(crate) const EROFS_XATTR_INDEX_POSIX_ACL_DEFAULT: u8 = 3;
pub(crate) const EROFS_XATTR_INDEX_TRUSTED: u8 = 4;
pub(crate) const EROFS_XATTR_INDEX_LUSTRE: u8 = 5;
pub(crate) const EROFS_XATTR_INDEX_SECURITY: u8 = 6;
/// Bit of `e_name_index`: the other bits are an index into the long prefixes.
pub(crate) const EROFS_XATTR_LONG_PREFIX: u8 = 0x80;
pub(crate) const EROFS_XATTR_LONG_PREFIX_MASK: u8 = 0x7f;
pub(crate) const EROFS_XATTR_FILTER_BITS: u32 = 32;
/// Filter of an inode without any names.
pub(crate) const EROFS_XATTR_FILTER_DEFAULT: u32 = u32::MAX;
/// Bit `xxh32(name without prefix, seed + base index) % 32` of a filter is clear if the name may
/// exist.
pub(crate) const EROFS_XATTR_FILTER_SEED: u32 = 0x25BB_E08F;
/// Alignment of entries and ids.
pub(crate) const XATTR_ALIGN: u64 = 4;

/// Prefixes by number. Most end with a dot; those of ACLs are complete names.
pub(crate) const XATTR_PREFIXES: [(u8, &[u8]); 6] = [
    (EROFS_XATTR_INDEX_USER, b"user."),
    (EROFS_XATTR_INDEX_POSIX_ACL_ACCESS, b"system.posix_acl_access"),
    (EROFS_XATTR_INDEX_POSIX_ACL_DEFAULT, b"system.posix_acl_default"),
    (EROFS_XATTR_INDEX_TRUSTED, b"trusted."),
    (EROFS_XATTR_INDEX_LUSTRE, b"lustre."),
    (EROFS_XATTR_INDEX_SECURITY, b"security."),
];

/// Longest stored cluster.
pub(crate) const Z_EROFS_PCLUSTER_MAX_SIZE: u32 = 1 << 20;
/// Longest decoded cluster.
pub(crate) const Z_EROFS_PCLUSTER_MAX_DSIZE: u32 = 12 << 20;

// Algorithms: numbers in `h_algorithmtype`, bits in `available_compr_algs`.
pub(crate) const Z_EROFS_COMPRESSION_LZ4: u8 = 0;
pub(crate) const Z_EROFS_COMPRESSION_LZMA: u8 = 1;
pub(crate) const Z_EROFS_COMPRESSION_DEFLATE: u8 = 2;
pub(crate) const Z_EROFS_COMPRESSION_ZSTD: u8 = 3;
pub(crate) const Z_EROFS_COMPRESSION_MAX: u8 = 4;
pub(crate) const Z_EROFS_ALL_COMPR_ALGS: u16 = (1 << Z_EROFS_COMPRESSION_MAX) - 1;
/// Largest and smallest dictionary of LZMA.
pub(crate) const Z_EROFS_LZMA_MAX_DICT_SIZE: u32 = 8 * Z_EROFS_PCLUSTER_MAX_SIZE;
pub(crate) const LZMA_DICT_SIZE_MIN: u32 = 4096;
/// Subtracted from the logarithm of the zstd window as stored.
pub(crate) const ZSTD_WINDOWLOG_ABSOLUTEMIN: u8 = 10;
/// Largest stored `windowlog`.
pub(crate) const ZSTD_WINDOWLOG_STORED_MAX: u8 = 10;
pub(crate) const DEFLATE_WINDOWBITS_MAX: u8 = 15;
/// Maximum distance of LZ4; `max_distance` 0 means the same.
pub(crate) const LZ4_DISTANCE_MAX: u16 = 65_535;

// Bits of `h_advise`.
/// [`EROFS_INODE_COMPRESSED_COMPACT`]: most index entries take 2 bytes.
pub(crate) const Z_EROFS_ADVISE_COMPACTED_2B: u16 = 0x1;
/// [`EROFS_INODE_COMPRESSED_FULL`]: [`Extent`] records instead of an index. The only other bits
/// with a meaning are then the two of the record's size, [`Z_EROFS_ADVISE_FRAGMENT_PCLUSTER`], and
/// [`Z_EROFS_ADVISE_INTERLACED_PCLUSTER`].
pub(crate) const Z_EROFS_ADVISE_EXTENTS: u16 = 0x1;
pub(crate) const Z_EROFS_ADVISE_BIG_PCLUSTER_1: u16 = 0x2;
pub(crate) const Z_EROFS_ADVISE_BIG_PCLUSTER_2: u16 = 0x4;
pub(crate) const Z_EROFS_ADVISE_INLINE_PCLUSTER: u16 = 0x8;
pub(crate) const Z_EROFS_ADVISE_INTERLACED_PCLUSTER: u16 = 0x10;
pub(crate) const Z_EROFS_ADVISE_FRAGMENT_PCLUSTER: u16 = 0x20;
/// With [`Z_EROFS_ADVISE_EXTENTS`]: position of the record size, `4 << value` bytes.
pub(crate) const Z_EROFS_ADVISE_EXTRECSZ_BIT: u16 = 1;
pub(crate) const Z_EROFS_ADVISE_EXTRECSZ_MASK: u16 = 0x3;

/// Bit of the last byte of a map header: without it, all 8 bytes are the file's offset in the
/// packed inode.
pub(crate) const Z_EROFS_FRAGMENT_INODE_BIT: u8 = 7;
/// Bits of `h_clusterbits`: base-2 logarithm of a logical cluster, less that of the block.
pub(crate) const CLUSTERBITS_MASK: u8 = 0xf;
/// Alignment of map headers.
pub(crate) const MAP_HEADER_ALIGN: u64 = 8;
/// Bytes between a map header and the first [`LclusterIndex`].
pub(crate) const FULL_INDEX_GAP: u64 = 8;

// Types of logical clusters: bits 0 and 1 of `di_advise`.
pub(crate) const Z_EROFS_LCLUSTER_TYPE_PLAIN: u8 = 0;
pub(crate) const Z_EROFS_LCLUSTER_TYPE_HEAD1: u8 = 1;
pub(crate) const Z_EROFS_LCLUSTER_TYPE_NONHEAD: u8 = 2;
pub(crate) const Z_EROFS_LCLUSTER_TYPE_HEAD2: u8 = 3;
pub(crate) const Z_EROFS_LI_LCLUSTER_TYPE_MASK: u16 = 3;
/// Bit of a head's `di_advise`: only the start of the decoded cluster is referred to.
pub(crate) const Z_EROFS_LI_PARTIAL_REF: u16 = 1 << 15;
/// Bit of `delta[0]` of a big cluster's first non-head: the other bits count the stored blocks.
pub(crate) const Z_EROFS_LI_D0_CBLKCNT: u16 = 1 << 11;
/// Largest distance in `delta`; longer ones need another step.
pub(crate) const DELTA_MAX: u16 = Z_EROFS_LI_D0_CBLKCNT - 1;

// Compact indexes: packs of entries, each followed by one block number (`U32`).
/// Pack of 4-byte entries: length, number of entries, and bits of each.
pub(crate) const COMPACT_4B_PACK_LEN: u64 = 8;
pub(crate) const COMPACT_4B_PACK_COUNT: u64 = 2;
pub(crate) const COMPACT_4B_ENTRY_BITS: usize = 16;
/// Pack of 2-byte entries: length, which is also the alignment, number of entries, and bits of
/// each.
pub(crate) const COMPACT_2B_PACK_LEN: u64 = 32;
pub(crate) const COMPACT_2B_PACK_COUNT: u64 = 16;
pub(crate) const COMPACT_2B_ENTRY_BITS: usize = 14;
/// Minimum bits of an entry below its type; more if a logical cluster needs more.
pub(crate) const COMPACT_LO_BITS_MIN: u32 = 12;
/// Largest base-2 logarithm of a logical cluster in 4-byte and 2-byte entries.
pub(crate) const COMPACT_4B_LCLUSTERBITS_MAX: u32 = 14;
pub(crate) const COMPACT_2B_LCLUSTERBITS_MAX: u32 = 12;

// Words of an extent's `plen`.
/// Mask of the stored length.
pub(crate) const Z_EROFS_EXTENT_PLEN_MASK: u32 = (Z_EROFS_PCLUSTER_MAX_SIZE << 1) - 1;
/// Only the start of the decoded cluster is referred to.
pub(crate) const Z_EROFS_EXTENT_PLEN_PARTIAL: u32 = 1 << 27;
/// First of four bits: 0 if uncompressed, else the algorithm's number plus 1.
pub(crate) const Z_EROFS_EXTENT_PLEN_FMT_BIT: u32 = 28;

disk! {
    /// The superblock with its first extension slot (`erofs_super_block`), followed by all
    /// `sb_extslots` slots. If [`EROFS_FEATURE_INCOMPAT_COMPR_CFGS`] is set, a list of
    /// [`CfgLength`] with bodies follows.
    struct SuperBlock (144) {
        magic: U32,
        /// CRC-32C without final inversion, of the block from here on, with zeros in this field.
        checksum: U32,
        feature_compat: U32,
        blkszbits: u8,
        sb_extslots: u8,
        /// `rootnid_2b`; with [`EROFS_FEATURE_INCOMPAT_48BIT`] and `rootnid_8b` set `blocks_hi`.
        rb: U16,
        /// Number of inodes.
        inos: U64,
        /// Seconds since 1970 (signed) to which times of compact inodes are relative.
        epoch: U64,
        /// Nanoseconds of compact inodes' times.
        fixed_nsec: U32,
        blocks_lo: U32,
        /// Block to which nids are relative.
        meta_blkaddr: U32,
        /// Block to which shared xattr ids are relative.
        xattr_blkaddr: U32,
        uuid: [u8; 16],
        volume_name: [u8; VOLUME_NAME_LEN],
        feature_incompat: U32,
        /// `available_compr_algs` with [`EROFS_FEATURE_INCOMPAT_COMPR_CFGS`], else
        /// `lz4_max_distance`.
        u1: U16,
        extra_devices: U16,
        /// Offset of the first [`DeviceSlot`] in units of its length.
        devt_slotoff: U16,
        /// Base-2 logarithm of a directory block in blocks: 0.
        dirblkbits: u8,
        xattr_prefix_count: u8,
        /// Offset of the first long prefix in units of 4 bytes.
        xattr_prefix_start: U32,
        packed_nid: U64,
        xattr_filter_reserved: u8,
        ishare_xattr_prefix_id: u8,
        reserved: [u8; 2],
        /// Creation time in seconds after `epoch`.
        build_time: U32,
        /// With [`EROFS_FEATURE_INCOMPAT_48BIT`]: the root's nid, if not 0.
        rootnid_8b: U64,
        reserved2: U64,
        /// First extension slot.
        metabox_nid: U64,
        reserved3: U64,
    }

    /// One row of the device table (`erofs_deviceslot`).
    struct DeviceSlot (128) {
        /// Digest or name of the device, for users and mount helpers.
        tag: [u8; 64],
        blocks_lo: U32,
        /// Block in the whole address space where the device starts; 0 if the device has a separate
        /// address space.
        uniaddr_lo: U32,
        blocks_hi: U16,
        uniaddr_hi: U16,
        reserved: [u8; 52],
    }

    /// The 32-byte inode (`erofs_inode_compact`).
    struct InodeCompact (32) {
        i_format: U16,
        /// 0: no xattrs; else the body has `12 + 4 * (i_xattr_icount - 1)` bytes.
        i_xattr_icount: U16,
        i_mode: U16,
        /// Link count; with [`EROFS_I_NLINK_1_BIT`] the upper 16 bits of `i_u`.
        i_nb: U16,
        i_size: U32,
        /// Seconds after the epoch.
        i_mtime: U32,
        /// Number of stored blocks (compressed), first block (flat), device number as
        /// `new_encode_dev`, or chunk format.
        i_u: U32,
        i_ino: U32,
        i_uid: U16,
        i_gid: U16,
        i_reserved: U32,
    }

    /// The 64-byte inode (`erofs_inode_extended`).
    struct InodeExtended (64) {
        i_format: U16,
        i_xattr_icount: U16,
        i_mode: U16,
        /// Upper 16 bits of `i_u`.
        i_nb: U16,
        i_size: U64,
        i_u: U32,
        i_ino: U32,
        i_uid: U32,
        i_gid: U32,
        /// Seconds since 1970, signed.
        i_mtime: U64,
        i_mtime_nsec: U32,
        i_nlink: U32,
        i_reserved2: [u8; 16],
    }

    /// Header of an inode's xattrs (`erofs_xattr_ibody_header`); `h_shared_count` ids (`U32`, in
    /// units of 4 bytes from `xattr_blkaddr`) and [`XattrEntry`]s follow.
    struct XattrIbodyHeader (12) {
        h_name_filter: U32,
        h_shared_count: u8,
        h_reserved2: [u8; 7],
    }

    /// Header of an xattr (`erofs_xattr_entry`); name without prefix and value follow, padded to 4
    /// bytes.
    struct XattrEntry (4) {
        e_name_len: u8,
        e_name_index: u8,
        e_value_size: U16,
    }

    /// A directory entry (`erofs_dirent`); the first name starts at the end of the block's entries.
    struct Dirent (12) {
        nid: U64,
        /// Offset of the name in the block.
        nameoff: U16,
        /// One of `EROFS_FT_*`.
        file_type: u8,
        reserved: u8,
    }

    /// One row of a chunk-based file's map (`erofs_inode_chunk_index`).
    struct ChunkIndex (8) {
        startblk_hi: U16,
        /// 0: the whole address space; else row `device_id - 1` of the device table.
        device_id: U16,
        startblk_lo: U32,
    }

    /// Header of a compressed file's map (`z_erofs_map_header`).
    struct MapHeader (8) {
        /// `h_fragmentoff`, `h_extents_lo`, or `h_idata_size` in its upper 16 bits.
        h_u: U32,
        h_advise: U16,
        /// Algorithm of HEAD1 in bits 0 to 3, of HEAD2 in bits 4 to 7; or with the next byte
        /// `h_extents_hi`.
        h_algorithmtype: u8,
        h_clusterbits: u8,
    }

    /// One logical cluster of a full index (`z_erofs_lcluster_index`).
    struct LclusterIndex (8) {
        /// Type and [`Z_EROFS_LI_PARTIAL_REF`].
        di_advise: U16,
        /// Heads: start of the decoded cluster in the logical cluster.
        di_clusterofs: U16,
        /// Heads: the block. Other entries: `delta[0]` (to the head) in the lower, `delta[1]` (to
        /// the next head) in the upper half.
        di_u: U32,
    }

    /// An encoded extent (`z_erofs_extent`), stored in the first 4, 8, 16, or all 32 bytes. With 4
    /// bytes, a `U64` with the start of the first precedes all.
    struct Extent (32) {
        plen: U32,
        pstart_lo: U32,
        pstart_hi: U32,
        lstart_lo: U32,
        lstart_hi: U32,
        reserved: [u8; 12],
    }

    /// Header of a codec's settings after the superblock: their length; the next header is aligned
    /// to 4 bytes.
    struct CfgLength (2) {
        size: U16,
    }

    /// Settings of LZ4 (`z_erofs_lz4_cfgs`).
    struct Lz4Cfgs (14) {
        max_distance: U16,
        max_pclusterblks: U16,
        reserved: [u8; 10],
    }

    /// Settings of MicroLZMA (`z_erofs_lzma_cfgs`).
    struct LzmaCfgs (14) {
        dict_size: U32,
        format: U16,
        reserved: [u8; 8],
    }

    /// Settings of DEFLATE (`z_erofs_deflate_cfgs`).
    struct DeflateCfgs (6) {
        windowbits: u8,
        reserved: [u8; 5],
    }

    /// Settings of Zstandard (`z_erofs_zstd_cfgs`).
    struct ZstdCfgs (6) {
        format: u8,
        /// Less [`ZSTD_WINDOWLOG_ABSOLUTEMIN`].
        windowlog: u8,
        reserved: [u8; 4],
    }
}

pub(crate) fn xattr_ibody_len(i_xattr_icount: u16) -> u64 {
    let head_len = size_of::<XattrIbodyHeader>() as u64;
    i_xattr_icount.checked_sub(1).map_or(0, |words| nth_at(head_len, words.into(), 4))
}

pub(crate) fn i_format(version: u16, layout: u16, bit_4: bool) -> U16 {
    U16::new(
        version << EROFS_I_VERSION_BIT
            | layout << EROFS_I_DATALAYOUT_BIT
            | u16::from(bit_4) << EROFS_I_NLINK_1_BIT,
    )
}

/// Number of 4-byte entries before the 2-byte ones, which start at a multiple of 32: `index_start`
/// is the offset of the first entry of a compact index.
pub(crate) fn compacted_4b_initial(index_start: u64) -> u64 {
    (COMPACT_2B_PACK_LEN.minus(index_start % COMPACT_2B_PACK_LEN) / 4) & 7
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn fields_lie_where_the_header_puts_them() {
        assert_eq!(offset_of!(SuperBlock, inos), 16);
        assert_eq!(offset_of!(SuperBlock, uuid), 48);
        assert_eq!(offset_of!(SuperBlock, feature_incompat), 80);
        assert_eq!(offset_of!(SuperBlock, packed_nid), 96);
        assert_eq!(offset_of!(SuperBlock, rootnid_8b), 112);
        assert_eq!(offset_of!(SuperBlock, metabox_nid), SUPER_BLOCK_LEN);
        assert_eq!(offset_of!(InodeExtended, i_mtime), 32);
        assert_eq!(offset_of!(InodeExtended, i_nlink), 44);
        assert_eq!(offset_of!(InodeCompact, i_uid), 24);
        assert_eq!(offset_of!(DeviceSlot, blocks_lo), 64);
    }

    #[test]
    fn entries_of_two_bytes_start_at_a_multiple_of_32() {
        for start in (8..200).step_by(8) {
            assert_eq!((start + 4 * compacted_4b_initial(start)) % COMPACT_2B_PACK_LEN, 0, "{start}");
        }
    }

    #[test]
    fn bodies_of_xattrs_count_their_header_once() {
        assert_eq!(xattr_ibody_len(0), 0);
        assert_eq!(xattr_ibody_len(1), 12);
        assert_eq!(xattr_ibody_len(u16::MAX), 12 + 4 * 65_534);
    }
}

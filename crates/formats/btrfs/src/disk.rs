//! Raw structures, little-endian, as `include/uapi/linux/btrfs_tree.h` of Linux has them.

use packfs_format::disk;
use std::mem::offset_of;
use zerocopy::little_endian::{U16, U32, U64};

disk! {
    /// Key of an item (`struct btrfs_disk_key`).
    struct DiskKey (17) { objectid: U64, kind: u8, offset: U64 }

    /// Head of a block of a tree (`struct btrfs_header`).
    struct Header (101) {
        csum: [u8; 32], fsid: [u8; 16], bytenr: U64, flags: U64, chunk_tree_uuid: [u8; 16],
        generation: U64, owner: U64, nritems: U32, level: u8,
    }

    /// Item of a leaf (`struct btrfs_item`).
    struct ItemHead (25) { key: DiskKey, offset: U32, size: U32 }

    /// Pointer in an inner block (`struct btrfs_key_ptr`).
    struct KeyPtr (33) { key: DiskKey, blockptr: U64, generation: U64 }

    /// Device (`struct btrfs_dev_item`).
    struct DevItem (98) {
        devid: U64, total_bytes: U64, bytes_used: U64, io_align: U32, io_width: U32,
        sector_size: U32, dev_type: U64, generation: U64, start_offset: U64, dev_group: U32,
        seek_speed: u8, bandwidth: u8, uuid: [u8; 16], fsid: [u8; 16],
    }

    /// Superblock (`struct btrfs_super_block`).
    struct RawSuperBlock (4096) {
        csum: [u8; 32], fsid: [u8; 16], bytenr: U64, flags: U64, magic: [u8; 8], generation: U64,
        root: U64, chunk_root: U64, log_root: U64, log_root_transid: U64, total_bytes: U64,
        bytes_used: U64, root_dir_objectid: U64, num_devices: U64, sectorsize: U32, nodesize: U32,
        leafsize: U32, stripesize: U32, sys_chunk_array_size: U32, chunk_root_generation: U64,
        compat_flags: U64, compat_ro_flags: U64, incompat_flags: U64, csum_type: U16,
        root_level: u8, chunk_root_level: u8, log_root_level: u8, dev_item: DevItem,
        label: [u8; 256], cache_generation: U64, uuid_tree_generation: U64,
        metadata_uuid: [u8; 16], nr_global_roots: U64, reserved: [u8; 216],
        sys_chunk_array: [u8; SYSTEM_ARRAY_MAX], super_roots: [u8; 672], padding: [u8; 565],
    }

    /// Chunk; its stripes follow (`struct btrfs_chunk`).
    struct ChunkHead (48) {
        length: U64, owner: U64, stripe_len: U64, chunk_type: U64, io_align: U32, io_width: U32,
        sector_size: U32, num_stripes: U16, sub_stripes: U16,
    }

    /// Stripe of a chunk (`struct btrfs_stripe`).
    struct RawStripe (32) { devid: U64, offset: U64, dev_uuid: [u8; 16] }

    /// Time (`struct btrfs_timespec`).
    struct Timespec (12) { sec: U64, nsec: U32 }

    /// Inode (`struct btrfs_inode_item`).
    struct RawInodeItem (160) {
        generation: U64, transid: U64, size: U64, nbytes: U64, block_group: U64, nlink: U32,
        uid: U32, gid: U32, mode: U32, rdev: U64, flags: U64, sequence: U64, reserved: [U64; 4],
        atime: Timespec, ctime: Timespec, mtime: Timespec, otime: Timespec,
    }

    /// Extent of a file up to inline data (`struct btrfs_file_extent_item`).
    struct FileExtentHead (21) {
        generation: U64, ram_bytes: U64, compression: u8, encryption: u8, other_encoding: U16,
        extent_type: u8,
    }

    /// Extent of a file that is not inline (`struct btrfs_file_extent_item`).
    struct FileExtentItem (53) {
        head: FileExtentHead, disk_bytenr: U64, disk_num_bytes: U64, offset: U64, num_bytes: U64,
    }

    /// Entry of a directory, or attribute; name and value follow (`struct btrfs_dir_item`).
    struct DirItem (30) { location: DiskKey, transid: U64, data_len: U16, name_len: U16, kind: u8 }

    /// Name of an inode; the name follows (`struct btrfs_inode_ref`).
    struct InodeRef (10) { index: U64, name_len: U16 }

    /// Name of an inode whose reference is found by a hash (`struct btrfs_inode_extref`).
    struct InodeExtref (18) { parent_objectid: U64, index: U64, name_len: U16 }

    /// Root of a subvolume, as all kernels wrote it (`struct btrfs_root_item`).
    struct RootItem (239) {
        inode: RawInodeItem, generation: U64, root_dirid: U64, bytenr: U64, byte_limit: U64,
        bytes_used: U64, last_snapshot: U64, flags: U64, refs: U32, drop_progress: DiskKey,
        drop_level: u8, level: u8,
    }

    /// Fields appended by Linux 3.6.
    struct RootItemV2 (200) {
        generation_v2: U64, uuid: [u8; 16], parent_uuid: [u8; 16], received_uuid: [u8; 16],
        ctransid: U64, otransid: U64, stransid: U64, rtransid: U64, ctime: Timespec,
        otime: Timespec, stime: Timespec, rtime: Timespec, reserved: [U64; 8],
    }

    /// Directory entry of a subvolume; its name follows (`struct btrfs_root_ref`).
    struct RootRef (18) { dirid: U64, sequence: U64, name_len: U16 }

    /// Owner of an extent (`struct btrfs_extent_item`).
    struct ExtentItem (24) { refs: U64, generation: U64, flags: U64 }

    /// End of a logged range of a listing (`struct btrfs_dir_log_item`).
    struct DirLogItem (8) { end: U64 }
}

pub(crate) const MAGIC: [u8; 8] = *b"_BHRfS_M";
pub(crate) const MAGIC_AT: u64 = SUPER_AT + ZONED_MAGIC_AT;
/// Offset of the magic bytes of the first superblock in the log of a zoned device.
pub(crate) const ZONED_MAGIC_AT: u64 = offset_of!(RawSuperBlock, magic) as u64;
pub(crate) const SUPER_AT: u64 = 64 << 10;
pub(crate) const SUPER_LEN: usize = size_of::<RawSuperBlock>();
pub(crate) const COPIES_AT: [u64; 2] = [64 << 20, 256 << 30];
pub(crate) const SYSTEM_ARRAY_MAX: usize = 2048;
pub(crate) const LEVELS_MAX: u8 = 8;
pub(crate) const STRIPE_LEN: u64 = 64 << 10;

/// Types of items (`BTRFS_*_KEY`).
pub(crate) mod kind {
    pub(crate) const INODE_ITEM: u8 = 1;
    pub(crate) const INODE_REF: u8 = 12;
    pub(crate) const INODE_EXTREF: u8 = 13;
    pub(crate) const XATTR_ITEM: u8 = 24;
    pub(crate) const DIR_LOG_INDEX: u8 = 72;
    pub(crate) const DIR_ITEM: u8 = 84;
    pub(crate) const DIR_INDEX: u8 = 96;
    pub(crate) const EXTENT_DATA: u8 = 108;
    pub(crate) const EXTENT_CSUM: u8 = 128;
    pub(crate) const ROOT_ITEM: u8 = 132;
    pub(crate) const ROOT_BACKREF: u8 = 144;
    pub(crate) const ROOT_REF: u8 = 156;
    pub(crate) const EXTENT_ITEM: u8 = 168;
    pub(crate) const METADATA_ITEM: u8 = 169;
    pub(crate) const DEV_ITEM: u8 = 216;
    pub(crate) const CHUNK_ITEM: u8 = 228;
}

/// Numbers of trees and objects (`BTRFS_*_OBJECTID`).
pub(crate) mod tree {
    pub(crate) const ROOT: u64 = 1;
    pub(crate) const EXTENT: u64 = 2;
    pub(crate) const CHUNK: u64 = 3;
    pub(crate) const TOP: u64 = 5;
    /// Directory of the root tree that names the default subvolume.
    pub(crate) const ROOT_DIR: u64 = 6;
    pub(crate) const CHECKSUMS: u64 = 7;
    /// First number of subvolumes, inodes, and chunks.
    pub(crate) const FIRST_FREE: u64 = 256;
    /// Bits of a subvolume's number; the bits above are the level of a quota group.
    const SUBVOLUME_BITS: u32 = 48;
    /// Last number that users' objects have.
    pub(crate) const LAST_FREE: u64 = -256_i64 as u64;
    pub(crate) const CHECKSUM_OBJECT: u64 = -10_i64 as u64;
    /// Trees of logs, and the tree that lists them.
    pub(crate) const LOG: u64 = -6_i64 as u64;
    pub(crate) const RELOC: u64 = -8_i64 as u64;

    /// True for trees of files.
    pub(crate) fn is_subvolume(id: u64) -> bool {
        id == TOP || id >= FIRST_FREE && id >> SUBVOLUME_BITS == 0
    }

    /// True if a block of `owner` may belong to tree `id`. Subvolumes share blocks; logs and
    /// relocated trees have other numbers (`btrfs_check_eb_owner` of Linux).
    pub(crate) fn may_own(owner: u64, id: u64) -> bool {
        owner == id || matches!(id, LOG | RELOC) || is_subvolume(id) && is_subvolume(owner)
    }
}

//! Raw structures of ext2, ext3 and ext4, little-endian, with the names of the kernel's
//! `fs/ext4/ext4.h`, `ext4_extents.h`, `xattr.h`, and `fast_commit.h`; those of the journal are
//! big-endian (`include/linux/jbd2.h`).
//!
//! Owns layout; says nothing about which values are allowed.

use packfs_format::disk;
use zerocopy::little_endian::{U16, U32, U64};

type Uuid = [u8; 16];

disk! {
    /// Superblock (`struct ext4_super_block`). Runs of fields that are not read have no names here.
    struct Ext4SuperBlock (1024) {
        s_inodes_count: U32, s_blocks_count_lo: U32, s_r_blocks_count_lo: U32,
        s_free_blocks_count_lo: U32, s_free_inodes_count: U32, s_first_data_block: U32,
        s_log_block_size: U32, s_log_cluster_size: U32, s_blocks_per_group: U32,
        s_clusters_per_group: U32, s_inodes_per_group: U32, unread: [u8; 12], s_magic: [u8; 2],
        s_state: U16, unread2: [u8; 16], s_rev_level: U32, unread3: [u8; 4], s_first_ino: U32,
        s_inode_size: U16, s_block_group_nr: U16, s_feature_compat: U32, s_feature_incompat: U32,
        s_feature_ro_compat: U32, s_uuid: Uuid, s_volume_name: [u8; 16], s_last_mounted: [u8; 64],
        unread4: [u8; 6], s_reserved_gdt_blocks: U16, s_journal_uuid: Uuid, s_journal_inum: U32,
        unread5: [u8; 26], s_desc_size: U16, s_default_mount_opts: U32, s_first_meta_bg: U32,
        s_mkfs_time: U32, s_jnl_blocks: [U32; 17], s_blocks_count_hi: U32, s_r_blocks_count_hi: U32,
        s_free_blocks_count_hi: U32, unread6: [u8; 12], s_mmp_block: U64, s_raid_stripe_width: U32,
        s_log_groups_per_flex: u8, s_checksum_type: u8, unread7: [u8; 2], s_kbytes_written: U64,
        unread8: [u8; 192], s_usr_quota_inum: U32, s_grp_quota_inum: U32, s_overhead_blocks: U32,
        s_backup_bgs: [U32; 2], unread9: [u8; 24], s_prj_quota_inum: U32, s_checksum_seed: U32,
        s_wtime_hi: u8, s_mtime_hi: u8, s_mkfs_time_hi: u8, unread10: [u8; 9],
        s_orphan_file_inum: U32, unread11: [u8; 376], s_checksum: U32,
    }

    /// Descriptor of a group (`struct ext4_group_desc`); up to `bg_block_bitmap_hi` in filesystems
    /// without 64-bit numbers of blocks.
    struct Ext4GroupDesc (64) {
        bg_block_bitmap_lo: U32, bg_inode_bitmap_lo: U32, bg_inode_table_lo: U32,
        bg_free_blocks_count_lo: U16, bg_free_inodes_count_lo: U16, bg_used_dirs_count_lo: U16,
        bg_flags: U16, bg_exclude_bitmap_lo: U32, bg_block_bitmap_csum_lo: U16,
        bg_inode_bitmap_csum_lo: U16, bg_itable_unused_lo: U16, bg_checksum: U16,
        bg_block_bitmap_hi: U32, bg_inode_bitmap_hi: U32, bg_inode_table_hi: U32,
        bg_free_blocks_count_hi: U16, bg_free_inodes_count_hi: U16, bg_used_dirs_count_hi: U16,
        bg_itable_unused_hi: U16, bg_exclude_bitmap_hi: U32, bg_block_bitmap_csum_hi: U16,
        bg_inode_bitmap_csum_hi: U16, bg_reserved: U32,
    }

    /// Fields that every inode has (`struct ext4_inode`).
    struct Ext4Inode (128) {
        i_mode: U16, i_uid: U16, i_size_lo: U32,
        /// Hash of the value in an inode that contains an attribute value.
        i_atime: U32,
        i_ctime: U32, i_mtime: U32, i_dtime: U32, i_gid: U16, i_links_count: U16, i_blocks_lo: U32,
        i_flags: U32, l_i_version: U32,
        /// Block numbers, extents, inline data, or a device number.
        i_block: [U32; 15],
        i_generation: U32, i_file_acl_lo: U32, i_size_high: U32, i_obso_faddr: U32,
        l_i_blocks_high: U16, l_i_file_acl_high: U16, l_i_uid_high: U16, l_i_gid_high: U16,
        l_i_checksum_lo: U16, l_i_reserved: U16,
    }

    /// Optional fields after them; an inode has the first `i_extra_isize` bytes.
    struct Ext4InodeExtra (32) {
        i_extra_isize: U16, i_checksum_hi: U16, i_ctime_extra: U32, i_mtime_extra: U32,
        i_atime_extra: U32, i_crtime: U32, i_crtime_extra: U32, i_version_hi: U32, i_projid: U32,
    }

    /// Header of a node of an extent tree (`struct ext4_extent_header`).
    struct ExtentHeader (12) {
        eh_magic: U16, eh_entries: U16, eh_max: U16, eh_depth: U16, eh_generation: U32,
    }

    /// Row of a leaf (`struct ext4_extent`).
    struct Extent (12) { ee_block: U32, ee_len: U16, ee_start_hi: U16, ee_start_lo: U32 }

    /// Row of an inner node (`struct ext4_extent_idx`).
    struct ExtentIdx (12) { ei_block: U32, ei_leaf_lo: U32, ei_leaf_hi: U16, ei_unused: U16 }

    /// Entry of a directory; its name follows (`struct ext4_dir_entry_2`).
    struct DirEntry2 (8) { inode: U32, rec_len: U16, name_len: u8, file_type: u8 }

    /// End of a block of entries (`struct ext4_dir_entry_tail`).
    struct DirEntryTail (12) {
        det_reserved_zero1: U32, det_rec_len: U16, det_reserved_zero2: u8, det_reserved_ft: u8,
        det_checksum: U32,
    }

    /// Description in the root of a hash tree (`struct dx_root_info`).
    struct DxRootInfo (8) {
        reserved_zero: U32, hash_version: u8, info_length: u8, indirect_levels: u8,
        unused_flags: u8,
    }

    /// Counts of rows, instead of the first hash (`struct dx_countlimit`).
    struct DxCountlimit (4) { limit: U16, count: U16 }

    /// Row of a node of a hash tree (`struct dx_entry`).
    struct DxEntry (8) { hash: U32, block: U32 }

    /// Checksum after the last row of a node (`struct dx_tail`).
    struct DxTail (8) { dt_reserved: U32, dt_checksum: U32 }

    /// Head of a block of attributes (`struct ext4_xattr_header`).
    struct XattrHeader (32) {
        h_magic: U32, h_refcount: U32, h_blocks: U32, h_hash: U32, h_checksum: U32,
        h_reserved: [U32; 3],
    }

    /// Attribute; its name follows (`struct ext4_xattr_entry`).
    struct XattrEntry (16) {
        e_name_len: u8, e_name_index: u8, e_value_offs: U16, e_value_inum: U32, e_value_size: U32,
        e_hash: U32,
    }

    /// Multiple mount protection (`struct mmp_struct`).
    struct MmpStruct (8) { mmp_magic: U32, mmp_seq: U32 }

    /// Head of a record of a fast commit (`struct ext4_fc_tl`).
    struct FcTl (4) { fc_tag: U16, fc_len: U16 }

    struct FcHead (8) { fc_features: U32, fc_tid: U32 }

    struct FcTail (8) { fc_tid: U32, fc_crc: U32 }

    struct FcAddRange (16) { fc_ino: U32, fc_ex: Extent }

    struct FcDelRange (12) { fc_ino: U32, fc_lblk: U32, fc_len: U32 }

    /// Name of an inode; the name follows (`struct ext4_fc_dentry_info`).
    struct FcDentryInfo (8) { fc_parent_ino: U32, fc_ino: U32 }
}

/// Big-endian structures of the journal.
pub(crate) mod journal {
    use packfs_format::disk;
    use zerocopy::big_endian::{U16, U32, U64};

    disk! {
        /// Header of a descriptor, commit, or revoke block (`journal_header_t`).
        struct JournalHeader (12) { h_magic: U32, h_blocktype: U32, h_sequence: U32 }

        /// Superblock of a journal, up to the last used field (`journal_superblock_t`).
        struct JournalSuper (1024) {
            s_header: JournalHeader, s_blocksize: U32, s_maxlen: U32, s_first: U32,
            s_sequence: U32, s_start: U32, s_errno: U32, s_feature_compat: U32,
            s_feature_incompat: U32, s_feature_ro_compat: U32, s_uuid: [u8; 16], unread: [u8; 16],
            s_checksum_type: u8, s_padding2: [u8; 3], s_num_fc_blks: U32, unread2: [u8; 164],
            s_checksum: U32, s_users: [u8; 768],
        }

        /// Commit (`struct commit_header`).
        struct CommitHeader (60) {
            h_header: JournalHeader, h_chksum_type: u8, h_chksum_size: u8,
            h_padding: [u8; 2], h_chksum: [U32; 8], h_commit_sec: U64, h_commit_nsec: U32,
        }

        /// Header of a list of revoked blocks (`jbd2_journal_revoke_header_t`).
        struct RevokeHeader (16) { r_header: JournalHeader, r_count: U32 }

        /// Block in the log; the last field only with 64-bit numbers of blocks
        /// (`journal_block_tag_t`).
        struct BlockTag (12) { t_blocknr: U32, t_checksum: U16, t_flags: U16, t_blocknr_high: U32 }

        /// Block in the log with checksums of version 3 (`journal_block_tag3_t`).
        struct BlockTag3 (16) { t_blocknr: U32, t_flags: U32, t_blocknr_high: U32, t_checksum: U32 }
    }
}

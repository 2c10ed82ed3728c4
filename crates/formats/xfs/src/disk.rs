//! Raw structures of XFS, big-endian, with the names of the kernel's
//! `fs/xfs/libxfs/xfs_format.h`, `xfs_da_format.h`, and `xfs_log_format.h`; checksums, and most of
//! the log, are little-endian, as the machines that wrote it.
//!
//! Owns layout and numbers; says nothing about which values are allowed.

use packfs_format::{crc32c, disk, structure, units::*};
use std::mem::offset_of;
use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{big_endian, little_endian};

type Uuid = [u8; 16];
type Crc = little_endian::U32;

disk! {
    /// Superblock (`struct xfs_dsb`). Runs of fields that are not read have no names here.
    struct Dsb (304) {
        sb_magicnum: [u8; 4], sb_blocksize: U32, sb_dblocks: U64, sb_rblocks: U64, sb_rextents: U64,
        sb_uuid: Uuid, sb_logstart: U64, sb_rootino: U64, unread: [u8; 16], sb_rextsize: U32,
        sb_agblocks: U32, sb_agcount: U32, sb_rbmblocks: U32, sb_logblocks: U32, sb_versionnum: U16,
        sb_sectsize: U16, sb_inodesize: U16, sb_inopblock: U16, sb_fname: [u8; 12], sb_blocklog: u8,
        sb_sectlog: u8, sb_inodelog: u8, sb_inopblog: u8, sb_agblklog: u8, sb_rextslog: u8,
        sb_inprogress: u8, sb_imax_pct: u8, sb_icount: U64, sb_ifree: U64, sb_fdblocks: U64,
        unread2: [u8; 28], sb_inoalignmt: U32, unread3: [u8; 8], sb_dirblklog: u8, unread4: [u8; 7],
        sb_features2: U32, sb_bad_features2: U32, sb_features_compat: U32,
        sb_features_ro_compat: U32, sb_features_incompat: U32, sb_features_log_incompat: U32,
        sb_crc: Crc, unread5: [u8; 12], sb_lsn: U64, sb_meta_uuid: Uuid, unread6: [u8; 12],
        sb_rgextents: U32, sb_rgblklog: u8, sb_pad: [u8; 7], sb_rtstart: U64, sb_rtreserved: U64,
    }

    /// Roots of the trees of free space of a group (`struct xfs_agf`).
    struct Agf (224) {
        agf_magicnum: U32, agf_versionnum: U32, agf_seqno: U32, agf_length: U32, agf_bno_root: U32,
        agf_cnt_root: U32, agf_rmap_root: U32, agf_bno_level: U32, agf_cnt_level: U32,
        agf_rmap_level: U32, agf_flfirst: U32, agf_fllast: U32, agf_flcount: U32, unread: [u8; 12],
        agf_uuid: Uuid, unread2: [u8; 8], agf_refcount_root: U32, agf_refcount_level: U32,
        agf_spare64: [U64; 14], agf_lsn: U64, agf_crc: Crc, agf_spare2: U32,
    }

    /// Roots of the trees of inodes of a group (`struct xfs_agi`).
    struct Agi (344) {
        agi_magicnum: U32, agi_versionnum: U32, agi_seqno: U32, agi_length: U32, agi_count: U32,
        agi_root: U32, agi_level: U32, unread: [u8; 268], agi_uuid: Uuid, agi_crc: Crc,
        agi_pad32: U32, agi_lsn: U64, agi_free_root: U32, agi_free_level: U32, unread2: [u8; 8],
    }

    /// Head of the blocks that a group keeps for its trees (`struct xfs_agfl`).
    struct Agfl (36) {
        agfl_magicnum: U32, agfl_seqno: U32, agfl_uuid: Uuid, agfl_lsn: U64, agfl_crc: Crc,
    }

    /// Start of every block of a tree (`struct xfs_btree_block`).
    struct BtreeBlock (8) { bb_magic: U32, bb_level: U16, bb_numrecs: U16 }

    /// Block of a tree of a group; up to `bb_rightsib` in version 4 (`struct xfs_btree_block`).
    struct BtreeShort (56) {
        bb: BtreeBlock, bb_leftsib: U32, bb_rightsib: U32, bb_blkno: U64, bb_lsn: U64,
        bb_uuid: Uuid, bb_owner: U32, bb_crc: Crc,
    }

    /// Block of a tree of extents; the same fields with 64-bit numbers (`struct xfs_btree_block`).
    struct BtreeLong (72) {
        bb: BtreeBlock, bb_leftsib: U64, bb_rightsib: U64, bb_blkno: U64, bb_lsn: U64,
        bb_uuid: Uuid, bb_owner: U64, bb_crc: Crc, bb_pad: U32,
    }

    /// Root of a tree of extents in an inode (`struct xfs_bmdr_block`).
    struct BmdrBlock (4) { bb_level: U16, bb_numrecs: U16 }

    /// Extent of a file (`struct xfs_bmbt_rec`): a bit, then 54, 52, and 21 bits.
    struct BmbtRec (16) { l0: U64, l1: U64 }

    /// Chunk of 64 inodes (`struct xfs_inobt_rec`).
    struct InobtRec (16) {
        ir_startino: U32,
        /// Upper half of a count without the feature for sparse chunks.
        ir_holemask: U16,
        ir_count: u8, ir_freecount: u8, ir_free: U64,
    }

    /// Head of a directory block of version 5 (`struct xfs_dir3_blk_hdr`).
    struct Dir3BlkHdr (48) { magic: U32, crc: Crc, blkno: U64, lsn: U64, uuid: Uuid, owner: U64 }

    /// Head of data of a directory (`struct xfs_dir2_data_hdr`).
    struct Dir2DataHdr (16) { magic: U32, bestfree: [u8; 12] }

    /// Version 5 of the same (`struct xfs_dir3_data_hdr`).
    struct Dir3DataHdr (64) { hdr: Dir3BlkHdr, best_free: [u8; 12], pad: U32 }

    /// Free space of a directory block (`struct xfs_dir2_data_unused`).
    struct Dir2DataUnused (4) { freetag: U16, length: U16 }

    /// Entry of a directory; name, type, and tag follow (`struct xfs_dir2_data_entry`).
    struct Dir2DataEntry (9) { inumber: U64, namelen: u8 }

    /// End of the only block of a directory (`struct xfs_dir2_block_tail`).
    struct Dir2BlockTail (8) { count: U32, stale: U32 }

    /// Entry of a hash table (`struct xfs_dir2_leaf_entry`).
    struct Dir2LeafEntry (8) { hashval: U32, address: U32 }

    /// Entry of a node (`struct xfs_da_node_entry`).
    struct DaNodeEntry (8) { hashval: U32, before: U32 }

    /// Head of a block of a hash table (`struct xfs_da_blkinfo`).
    struct DaBlkinfo (12) { forw: U32, back: U32, magic: U16, pad: U16 }

    /// Version 5 of the same (`struct xfs_da3_blkinfo`).
    struct Da3Blkinfo (56) {
        hdr: DaBlkinfo, crc: Crc, blkno: U64, lsn: U64, uuid: Uuid, owner: U64,
    }

    /// Head of a node or a leaf of directories (`struct xfs_da_node_hdr`, `xfs_dir2_leaf_hdr`).
    struct DaNodeHdr (16) { info: DaBlkinfo, count: U16, level_or_stale: U16 }

    /// Version 5 of the same (`struct xfs_da3_node_hdr`, `xfs_dir3_leaf_hdr`).
    struct Da3NodeHdr (64) { info: Da3Blkinfo, count: U16, level_or_stale: U16, pad: U32 }

    /// Head of a leaf of attributes (`struct xfs_attr_leaf_hdr`).
    struct AttrLeafHdr (32) { info: DaBlkinfo, count: U16, unread: [u8; 18] }

    /// Version 5 of the same (`struct xfs_attr3_leaf_hdr`).
    struct Attr3LeafHdr (80) { info: Da3Blkinfo, count: U16, unread: [u8; 22] }

    /// Entry of a leaf of attributes (`struct xfs_attr_leaf_entry`).
    struct AttrLeafEntry (8) { hashval: U32, nameidx: U16, flags: u8, pad2: u8 }

    /// Attribute whose value is in the leaf; both follow (`struct xfs_attr_leaf_name_local`).
    struct AttrLeafNameLocal (3) { valuelen: U16, namelen: u8 }

    /// Attribute whose value is in separate blocks; its name follows (`struct
    /// xfs_attr_leaf_name_remote`).
    struct AttrLeafNameRemote (9) { valueblk: U32, valuelen: U32, namelen: u8 }

    /// Head of attributes in an inode (`struct xfs_attr_sf_hdr`).
    struct AttrSfHdr (4) { totsize: U16, count: u8, padding: u8 }

    /// Attribute in an inode; name and value follow (`struct xfs_attr_sf_entry`).
    struct AttrSfEntry (3) { namelen: u8, valuelen: u8, flags: u8 }

    /// Head of a block of a value (`struct xfs_attr3_rmt_hdr`), and of a link target
    /// (`struct xfs_dsymlink_hdr`).
    struct RmtHdr (56) {
        rm_magic: U32, rm_offset: U32, rm_bytes: U32, rm_crc: Crc, rm_uuid: Uuid, rm_owner: U64,
        rm_blkno: U64, rm_lsn: U64,
    }

    /// Head of a block of the bitmap or summary of a realtime section
    /// (`struct xfs_rtbuf_blkinfo`).
    struct RtbufBlkinfo (48) {
        rt_magic: U32, rt_crc: Crc, rt_owner: U64, rt_blkno: U64, rt_lsn: U64, rt_uuid: Uuid,
    }

    /// Header of a record of the log (`struct xlog_rec_header`).
    struct RecHeader (328) {
        h_magicno: U32, h_cycle: U32, h_version: U32, h_len: U32, h_lsn: U64, h_tail_lsn: U64,
        h_crc: Crc, h_prev_block: U32, h_num_logops: U32,
        /// First words of the sectors of data.
        h_cycle_data: [[u8; 4]; 64],
        h_fmt: U32, h_fs_uuid: Uuid, h_size: U32, h_pad0: U32,
    }

    /// Further header of a record of more than 32 KiB (`struct xlog_rec_ext_header`).
    struct RecExtHeader (260) { xh_cycle: U32, xh_cycle_data: [[u8; 4]; 64] }

    /// Header of an operation of the log (`struct xlog_op_header`).
    struct OpHeader (12) { oh_tid: U32, oh_len: U32, oh_clientid: u8, oh_flags: u8, oh_res2: U16 }

    /// Chunk of new inodes (`struct xfs_icreate_log`).
    struct IcreateLog (28) {
        icl_type: little_endian::U16, icl_size: little_endian::U16, icl_ag: U32, icl_agbno: U32,
        icl_count: U32, icl_isize: U32, icl_length: U32, icl_gen: U32,
    }
}

/// Declares the inode on disk, and that of the log, which is in the byte order of the machine.
macro_rules! dinodes {
    ($($(#[$doc:meta])* $name:ident in $order:ident;)*) => {
        disk! {$(
            $(#[$doc])*
            struct $name (176) {
                di_magic: $order::U16, di_mode: $order::U16, di_version: u8, di_format: u8,
                /// Link count of version 1.
                di_metatype: $order::U16,
                di_uid: $order::U32, di_gid: $order::U32, di_nlink: $order::U32,
                di_projid_lo: $order::U16, di_projid_hi: $order::U16,
                /// Before version 3 `di_flushiter` in the last two bytes.
                di_big_nextents: $order::U64,
                di_atime: $order::U64, di_mtime: $order::U64, di_ctime: $order::U64,
                di_size: $order::U64, di_nblocks: $order::U64, di_extsize: $order::U32,
                /// With [`XFS_DIFLAG2_NREXT64`] `di_big_anextents`.
                di_nextents: $order::U32,
                di_anextents: $order::U16, di_forkoff: u8, di_aformat: u8, di_dmevmask: $order::U32,
                di_dmstate: $order::U16, di_flags: $order::U16, di_gen: $order::U32,
                /// Inodes before version 3 end after this field.
                di_next_unlinked: $order::U32,
                di_crc: Crc, di_changecount: $order::U64, di_lsn: $order::U64,
                di_flags2: $order::U64, di_cowextsize: $order::U32, di_pad2: [u8; 12],
                di_crtime: $order::U64, di_ino: $order::U64, di_uuid: Uuid,
            }
        )*}
    };
}

dinodes! {
    /// Inode (`struct xfs_dinode`); no inode is shorter than 256 bytes.
    Dinode in big_endian;
    /// Inode in the log (`struct xfs_log_dinode`).
    LogDinode in little_endian;
}

/// Little-endian structures of the log.
pub(crate) mod log {
    use packfs_format::disk;
    use zerocopy::little_endian::{U16, U32, U64};

    disk! {
        /// First bytes of a transaction (`struct xfs_trans_header`).
        struct TransHeader (16) { th_magic: U32, th_type: U32, th_tid: U32, th_num_items: U32 }

        /// Start of every item.
        struct ItemHead (4) {
            item_type: U16,
            /// Number of its regions.
            item_size: U16,
        }

        /// Changed block; the map follows (`struct xfs_buf_log_format`).
        struct BufLogFormat (20) {
            blf_type: U16, blf_size: U16, blf_flags: U16, blf_len: U16, blf_blkno: U64,
            blf_map_size: U32,
        }

        /// Changed inode (`struct xfs_inode_log_format`).
        struct InodeLogFormat (56) {
            ilf_type: U16, ilf_size: U16, ilf_fields: U32, ilf_asize: U16, ilf_dsize: U16,
            ilf_pad: U32, ilf_ino: U64, ilfu_rdev: U32, ilfu_pad: [u8; 12], ilf_blkno: U64,
            ilf_len: U32, ilf_boffset: U32,
        }

        /// Start of an intent, and of its done item.
        struct IntentHead (16) {
            item_type: U16, item_size: U16,
            /// `bui_nextents`.
            nextents: U32,
            id: U64,
        }

        /// Change of a mapping (`struct xfs_map_extent`).
        struct MapExtent (32) {
            me_owner: U64, me_startblock: U64, me_startoff: U64, me_len: U32, me_flags: U32,
        }

        /// Change of an attribute (`struct xfs_attri_log_format`).
        struct AttriLogFormat (40) {
            head: IntentHead, alfi_ino: U64, alfi_op_flags: U32, alfi_name_len: U32,
            alfi_value_len: U32, alfi_attr_filter: U32,
        }

        /// Exchange of mappings (`struct xfs_xmi_log_format`).
        struct XmiLogFormat (88) {
            head: IntentHead, xmi_inode1: U64, xmi_inode2: U64, xmi_igen1: U32,
            xmi_igen2: U32, xmi_startoff1: U64, xmi_startoff2: U64, xmi_blockcount: U64,
            xmi_flags: U64, xmi_isize1: U64, xmi_isize2: U64,
        }
    }
}

// Bits of `di_flags` and `di_flags2`.
pub(crate) const XFS_DIFLAG_REALTIME: u16 = 1;
pub(crate) const XFS_DIFLAG2_REFLINK: u64 = 1 << 1;
pub(crate) const XFS_DIFLAG2_BIGTIME: u64 = 1 << 3;
pub(crate) const XFS_DIFLAG2_NREXT64: u64 = 1 << 4;
pub(crate) const XFS_DIFLAG2_METADATA: u64 = 1 << 5;

// Magics of structures. Those of version 4 have no checksum.
pub(crate) const XFS_SB_MAGIC: u32 = 0x5846_5342;
pub(crate) const XFS_DINODE_MAGIC: u16 = 0x494e;
pub(crate) const XFS_AGF_MAGIC: u32 = 0x5841_4746;
pub(crate) const XFS_AGI_MAGIC: u32 = 0x5841_4749;
pub(crate) const XFS_AGFL_MAGIC: u32 = 0x5841_464c;
pub(crate) const XFS_ABTB_MAGIC: u32 = 0x4142_5442;
pub(crate) const XFS_ABTB_CRC_MAGIC: u32 = 0x4142_3342;
pub(crate) const XFS_ABTC_MAGIC: u32 = 0x4142_5443;
pub(crate) const XFS_ABTC_CRC_MAGIC: u32 = 0x4142_3343;
pub(crate) const XFS_IBT_MAGIC: u32 = 0x4941_4254;
pub(crate) const XFS_IBT_CRC_MAGIC: u32 = 0x4941_4233;
pub(crate) const XFS_FIBT_MAGIC: u32 = 0x4649_4254;
pub(crate) const XFS_FIBT_CRC_MAGIC: u32 = 0x4649_4233;
pub(crate) const XFS_RMAP_CRC_MAGIC: u32 = 0x524d_4233;
pub(crate) const XFS_REFC_CRC_MAGIC: u32 = 0x5233_4643;
pub(crate) const XFS_BMAP_MAGIC: u32 = 0x424d_4150;
pub(crate) const XFS_BMAP_CRC_MAGIC: u32 = 0x424d_4133;
pub(crate) const XFS_RTRMAP_CRC_MAGIC: u32 = 0x4d41_5052;
pub(crate) const XFS_RTREFC_CRC_MAGIC: u32 = 0x5243_4e54;
pub(crate) const XFS_RTBITMAP_MAGIC: u32 = 0x424d_505a;
pub(crate) const XFS_RTSUMMARY_MAGIC: u32 = 0x5355_4d59;
pub(crate) const XFS_SYMLINK_MAGIC: u32 = 0x5853_4c4d;
pub(crate) const XFS_ATTR3_RMT_MAGIC: u32 = 0x5841_524d;
pub(crate) const XFS_DIR2_BLOCK_MAGIC: u32 = 0x5844_3242;
pub(crate) const XFS_DIR2_DATA_MAGIC: u32 = 0x5844_3244;
pub(crate) const XFS_DIR2_FREE_MAGIC: u32 = 0x5844_3246;
pub(crate) const XFS_DIR3_BLOCK_MAGIC: u32 = 0x5844_4233;
pub(crate) const XFS_DIR3_DATA_MAGIC: u32 = 0x5844_4433;
pub(crate) const XFS_DIR3_FREE_MAGIC: u32 = 0x5844_4633;
pub(crate) const XFS_DA_NODE_MAGIC: u16 = 0xfebe;
pub(crate) const XFS_DA3_NODE_MAGIC: u16 = 0x3ebe;
pub(crate) const XFS_ATTR_LEAF_MAGIC: u16 = 0xfbee;
pub(crate) const XFS_ATTR3_LEAF_MAGIC: u16 = 0x3bee;
/// Magics of hash trees: leaves of directories (`XFS_DIR2_LEAF1_MAGIC`, `XFS_DIR2_LEAFN_MAGIC`),
/// nodes, and leaves of attributes; the same of version 5.
pub(crate) const DA_MAGICS: [u16; 4] = [0xd2f1, 0xd2ff, XFS_DA_NODE_MAGIC, XFS_ATTR_LEAF_MAGIC];
pub(crate) const DA3_MAGICS: [u16; 4] = [0x3df1, 0x3dff, XFS_DA3_NODE_MAGIC, XFS_ATTR3_LEAF_MAGIC];
pub(crate) const XLOG_HEADER_MAGIC_NUM: u32 = 0xfeed_babe;
pub(crate) const XFS_TRANS_HEADER_MAGIC: u32 = 0x5452_414e;

/// Offsets of the fields that version 5 structures have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) crc: usize,
    pub(crate) lsn: usize,
    pub(crate) uuid: usize,
    pub(crate) blkno: Option<usize>,
}

macro_rules! stamp {
    ($name:ident, $crc:ident, $lsn:ident, $uuid:ident $(, $blkno:ident)?) => {{
        let [crc, lsn, uuid] = [offset_of!($name, $crc), offset_of!($name, $lsn), offset_of!($name, $uuid)];
        let blkno: &[usize] = &[$(offset_of!($name, $blkno))?];
        Stamp { crc, lsn, uuid, blkno: blkno.first().copied() }
    }};
}

impl Stamp {
    pub(crate) fn of(bytes: &[u8]) -> Option<Stamp> {
        Some(match structure::<U32>(bytes, 0)?.get() {
            XFS_ABTB_CRC_MAGIC | XFS_ABTC_CRC_MAGIC | XFS_IBT_CRC_MAGIC | XFS_FIBT_CRC_MAGIC
            | XFS_RMAP_CRC_MAGIC | XFS_REFC_CRC_MAGIC => {
                stamp!(BtreeShort, bb_crc, bb_lsn, bb_uuid, bb_blkno)
            }
            XFS_BMAP_CRC_MAGIC | XFS_RTRMAP_CRC_MAGIC | XFS_RTREFC_CRC_MAGIC => {
                stamp!(BtreeLong, bb_crc, bb_lsn, bb_uuid, bb_blkno)
            }
            XFS_AGF_MAGIC => stamp!(Agf, agf_crc, agf_lsn, agf_uuid),
            XFS_AGFL_MAGIC => stamp!(Agfl, agfl_crc, agfl_lsn, agfl_uuid),
            XFS_AGI_MAGIC => stamp!(Agi, agi_crc, agi_lsn, agi_uuid),
            XFS_SYMLINK_MAGIC | XFS_ATTR3_RMT_MAGIC => stamp!(RmtHdr, rm_crc, rm_lsn, rm_uuid, rm_blkno),
            XFS_DIR3_BLOCK_MAGIC | XFS_DIR3_DATA_MAGIC | XFS_DIR3_FREE_MAGIC => {
                stamp!(Dir3BlkHdr, crc, lsn, uuid, blkno)
            }
            XFS_RTBITMAP_MAGIC | XFS_RTSUMMARY_MAGIC => stamp!(RtbufBlkinfo, rt_crc, rt_lsn, rt_uuid),
            XFS_SB_MAGIC => stamp!(Dsb, sb_crc, sb_lsn, sb_uuid),
            _ => {
                let info: DaBlkinfo = structure(bytes, 0)?;
                let is_tree = DA3_MAGICS.contains(&info.magic.get());
                return is_tree.then_some(stamp!(Da3Blkinfo, crc, lsn, uuid, blkno));
            }
        })
    }
}

/// Length of the header of a block of an extent tree, in version 5 and 4.
pub(crate) const BMAP_HEADER_LEN: usize = size_of::<BtreeLong>();
pub(crate) const BMAP_HEADER_LEN_V4: usize = offset_of!(BtreeLong, bb_blkno);

/// Replaces bytes; does nothing if `new` exceeds `bytes`.
pub(crate) fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    if let Some(place) = bytes.get_mut(at..end_of(at, new.len())) {
        place.copy_from_slice(new);
    }
}

/// Stored and computed checksum of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checksum {
    pub(crate) found: u32,
    pub(crate) computed: u32,
}

impl Checksum {
    /// Computes the checksum with zeros for the four bytes at `at`, where it is stored. Bytes that
    /// are too short for it have a wrong one.
    pub(crate) fn of(bytes: &[u8], at: usize) -> Checksum {
        let (before, rest) = bytes.split_at_checked(at).unwrap_or((bytes, &[]));
        let crc = crc32c(crc32c(!0, before), &[0; 4]);
        let computed = !crc32c(crc, rest.get(4..).unwrap_or(&[]));
        Checksum { found: structure::<Crc>(bytes, at).map_or(!computed, Crc::get), computed }
    }

    pub(crate) fn is_right(self) -> bool {
        self.found == self.computed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_behind_the_end_are_wrong() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        assert!(!Checksum::of(&bytes, 6).is_right());
    }

    #[test]
    fn checksums_leave_out_their_own_place() {
        let mut bytes = *b"1234\xff\xff\xff\xff56789";
        let sum = Checksum::of(&bytes, 4);
        assert!(!sum.is_right());
        bytes[4..8].copy_from_slice(&sum.computed.to_le_bytes());
        assert!(Checksum::of(&bytes, 4).is_right());
        // The check value of CRC-32C, over "123456789" with four zeros within: computed apart.
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
    }
}

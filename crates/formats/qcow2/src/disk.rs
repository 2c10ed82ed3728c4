//! Raw structures of qcow2 images, big-endian.
//!
//! Owns layout and numbers; the reader checks which values are allowed. Source: QEMU's
//! `docs/interop/qcow2.rst`.

use packfs_format::disk;
use zerocopy::big_endian::{U16, U32, U64};

pub(crate) const MAGIC: [u8; 4] = *b"QFI\xfb";

disk! {
    /// Header of the file; complete in version 2.
    struct Header (72) {
        magic: [u8; 4], version: U32, backing_file_offset: U64, backing_file_size: U32,
        cluster_bits: U32,
        size: U64,
        crypt_method: U32, l1_size: U32, l1_table_offset: U64, refcount_table_offset: U64,
        refcount_table_clusters: U32, nb_snapshots: U32, snapshots_offset: U64,
    }

    /// Rest of the header in version 3.
    struct HeaderV3 (32) {
        incompatible_features: U64, compatible_features: U64, autoclear_features: U64,
        refcount_order: U32, header_length: U32,
    }

    /// Header of an extension, whose data is padded to a multiple of 8.
    struct Extension (8) { kind: U32, length: U32 }

    /// Row of the table of snapshots; extra data, id, name, and padding to 8 follow.
    struct SnapshotRow (40) {
        l1_table_offset: U64, l1_size: U32, id_str_size: U16, name_size: U16, date_sec: U32,
        date_nsec: U32, vm_clock_nsec: U64, vm_state_size: U32, extra_data_size: U32,
    }

    /// Start of the extra data of a snapshot.
    struct SnapshotExtra (16) { vm_state_size_large: U64, disk_size: U64 }

    /// Row of the table of feature names.
    struct FeatureName (48) {
        /// 0 for incompatible features.
        kind: u8,
        bit: u8, name: [u8; 46],
    }
}

pub(crate) const HEADER_LEN: u64 = size_of::<Header>() as u64;
/// Length of the shortest header of version 3, without the byte for the compression.
pub(crate) const HEADER_V3_LEN: u64 = HEADER_LEN + size_of::<HeaderV3>() as u64;

pub(crate) const DIRTY: u64 = 1 << 0;
pub(crate) const CORRUPT: u64 = 1 << 1;
pub(crate) const EXTERNAL_DATA: u64 = 1 << 2;
pub(crate) const COMPRESSION: u64 = 1 << 3;
pub(crate) const EXTENDED_L2: u64 = 1 << 4;

pub(crate) const EXTENSION_END: u32 = 0;
pub(crate) const EXTENSION_BACKING_FORMAT: u32 = 0xe279_2aca;
pub(crate) const EXTENSION_FEATURE_NAMES: u32 = 0x6803_f857;

/// Offset bits of an entry of an L1 or L2 table.
pub(crate) const OFFSET_MASK: u64 = 0x00ff_ffff_ffff_fe00;
/// Flag of a compressed cluster in an entry of an L2 table.
pub(crate) const COMPRESSED: u64 = 1 << 62;
/// Flag of a cluster that reads as zeros, in version 3.
pub(crate) const ZERO: u64 = 1 << 0;
/// Subclusters of a cluster, if entries are extended.
pub(crate) const SUBCLUSTERS: u32 = 32;

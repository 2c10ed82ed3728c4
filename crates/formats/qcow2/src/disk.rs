//! Raw structures of qcow2 images, byte for byte as they lie in the file, big-endian.
//!
//! Owns layout and numbers; says nothing about which values are allowed. Source: QEMU's
//! `docs/interop/qcow2.rst`.

use std::mem::size_of;
use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `QFI` and 0xfb.
pub(crate) const MAGIC: [u8; 4] = *b"QFI\xfb";

/// At the start of the file; all of the header in version 2.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) magic: [u8; 4],
    pub(crate) version: U32,
    pub(crate) backing_file_offset: U64,
    pub(crate) backing_file_size: U32,
    pub(crate) cluster_bits: U32,
    /// Length of the disk.
    pub(crate) size: U64,
    pub(crate) crypt_method: U32,
    pub(crate) l1_size: U32,
    pub(crate) l1_table_offset: U64,
    pub(crate) refcount_table_offset: U64,
    pub(crate) refcount_table_clusters: U32,
    pub(crate) nb_snapshots: U32,
    pub(crate) snapshots_offset: U64,
}

/// After it in version 3.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct HeaderV3 {
    pub(crate) incompatible_features: U64,
    pub(crate) compatible_features: U64,
    pub(crate) autoclear_features: U64,
    pub(crate) refcount_order: U32,
    pub(crate) header_length: U32,
}

/// Before the data of a header extension, which is padded to a multiple of 8.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Extension {
    pub(crate) kind: U32,
    pub(crate) length: U32,
}

/// A row of the table of snapshots, without what follows: extra data, id, name, padding to 8.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct SnapshotRow {
    pub(crate) l1_table_offset: U64,
    pub(crate) l1_size: U32,
    pub(crate) id_str_size: U16,
    pub(crate) name_size: U16,
    pub(crate) date_sec: U32,
    pub(crate) date_nsec: U32,
    pub(crate) vm_clock_nsec: U64,
    pub(crate) vm_state_size: U32,
    pub(crate) extra_data_size: U32,
}

/// Beginning of the extra data of a snapshot.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct SnapshotExtra {
    pub(crate) vm_state_size_large: U64,
    pub(crate) disk_size: U64,
}

/// A row of the table of feature names.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct FeatureName {
    /// 0 for incompatible features.
    pub(crate) kind: u8,
    pub(crate) bit: u8,
    pub(crate) name: [u8; 46],
}

const _: () = assert!(size_of::<Header>() == 72);
const _: () = assert!(size_of::<HeaderV3>() == 32);
const _: () = assert!(size_of::<SnapshotRow>() == 40);
const _: () = assert!(size_of::<FeatureName>() == 48);

/// Length of the header of version 2.
pub(crate) const HEADER_LEN: u64 = size_of::<Header>() as u64;
/// Length of the shortest header of version 3, which has no byte for the compression.
pub(crate) const HEADER_V3_LEN: u64 = HEADER_LEN + size_of::<HeaderV3>() as u64;

pub(crate) const DIRTY: u64 = 1 << 0;
pub(crate) const CORRUPT: u64 = 1 << 1;
pub(crate) const EXTERNAL_DATA: u64 = 1 << 2;
pub(crate) const COMPRESSION: u64 = 1 << 3;
pub(crate) const EXTENDED_L2: u64 = 1 << 4;

pub(crate) const EXTENSION_END: u32 = 0;
pub(crate) const EXTENSION_BACKING_FORMAT: u32 = 0xe279_2aca;
pub(crate) const EXTENSION_FEATURE_NAMES: u32 = 0x6803_f857;

/// Bits of an entry of an L1 or L2 table that are an offset in the file.
pub(crate) const OFFSET_MASK: u64 = 0x00ff_ffff_ffff_fe00;
/// Set in an entry of an L2 table for a compressed cluster.
pub(crate) const COMPRESSED: u64 = 1 << 62;
/// Set in an entry of version 3 for a cluster that reads as zeros.
pub(crate) const ZERO: u64 = 1 << 0;
/// Subclusters of a cluster, if entries are extended.
pub(crate) const SUBCLUSTERS: u32 = 32;

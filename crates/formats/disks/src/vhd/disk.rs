//! Raw structures of VHD, big-endian. Source: Microsoft's Virtual Hard Disk Image Format
//! Specification of 2006.

use std::mem::size_of;
use std::ops::Range;
use zerocopy::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(super) const COOKIE: [u8; 8] = *b"conectix";
pub(super) const DYNAMIC_COOKIE: [u8; 8] = *b"cxsparse";

/// At the end of the file; a copy is at the start of dynamic disks.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Footer {
    pub(super) cookie: [u8; 8],
    pub(super) features: U32,
    pub(super) version: U32,
    pub(super) data_offset: U64,
    pub(super) made_at: U32,
    pub(super) creator: [u8; 12],
    pub(super) original_size: U64,
    pub(super) current_size: U64,
    pub(super) geometry: U32,
    pub(super) disk_type: U32,
    pub(super) checksum: U32,
    pub(super) uuid: [u8; 16],
    pub(super) saved_state: u8,
    pub(super) reserved: [u8; 427],
}

/// At the data offset of the footer.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct DynamicHeader {
    pub(super) cookie: [u8; 8],
    pub(super) data_offset: U64,
    pub(super) table_offset: U64,
    pub(super) version: U32,
    pub(super) max_table_entries: U32,
    pub(super) block_size: U32,
    pub(super) checksum: U32,
    pub(super) parent: [u8; 984],
}

const _: () = assert!(size_of::<Footer>() == 512);
const _: () = assert!(size_of::<DynamicHeader>() == 1024);

/// Places of the checksums in their structures.
pub(super) const FOOTER_CHECKSUM: Range<usize> = 64..68;
pub(super) const HEADER_CHECKSUM: Range<usize> = 36..40;

pub(super) const FIXED: u32 = 2;
pub(super) const DYNAMIC: u32 = 3;
pub(super) const DIFFERENCING: u32 = 4;
/// Entry of a block that is not stored.
pub(super) const NO_BLOCK: u32 = u32::MAX;

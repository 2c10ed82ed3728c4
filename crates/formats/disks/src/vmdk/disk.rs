//! Raw structures of VMDK, little-endian. Source: VMware's Virtual Disk Format 5.0.

use std::mem::size_of;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(super) const MAGIC: [u8; 4] = *b"KDMV";

/// At the start of the file, and again as its footer. Sizes and offsets are in sectors.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Header {
    pub(super) magic: [u8; 4],
    pub(super) version: U32,
    pub(super) flags: U32,
    pub(super) capacity: U64,
    pub(super) grain_size: U64,
    pub(super) descriptor_offset: U64,
    pub(super) descriptor_size: U64,
    pub(super) rows_per_table: U32,
    pub(super) rgd_offset: U64,
    pub(super) gd_offset: U64,
    pub(super) overhead: U64,
    pub(super) unclean: u8,
    pub(super) newlines: [u8; 4],
    pub(super) compression: U16,
}

/// Before a compressed grain.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct GrainHead {
    /// First sector on the disk.
    pub(super) first: U64,
    /// Bytes that follow.
    pub(super) len: U32,
}

const _: () = assert!(size_of::<Header>() == 79);
const _: () = assert!(size_of::<GrainHead>() == 12);

/// Flags: a second directory with its tables, grains of zeros, compressed grains, heads of those.
pub(super) const HAS_COPY: u32 = 1 << 1;
pub(super) const ZERO_GRAINS: u32 = 1 << 2;
pub(super) const COMPRESSED: u32 = 1 << 16;
pub(super) const MARKERS: u32 = 1 << 17;

/// Offset of a directory that the footer names.
pub(super) const GD_AT_END: u64 = u64::MAX;
pub(super) const DEFLATE: u16 = 1;
pub(super) const NEWLINES: [u8; 4] = *b"\n \r\n";

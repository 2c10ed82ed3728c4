//! Raw structures of LVM2, little-endian. Source: `label.h`, `layout.h` and `format-text` of LVM2.

use std::mem::size_of;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(crate) const LABEL: [u8; 8] = *b"LABELONE";
pub(crate) const LABEL_KIND: [u8; 8] = *b"LVM2 001";
pub(crate) const AREA_MAGIC: [u8; 16] = *b" LVM2 x[5A%r0N*>";
/// Seed of all checksums.
pub(crate) const CHECKSUM_SEED: u32 = 0xf597_a6cf;

/// In one of the first four sectors.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Label {
    pub(crate) id: [u8; 8],
    pub(crate) sector: U64,
    /// Checksum of the rest of the sector, from the offset on.
    pub(crate) checksum: U32,
    /// Start of the header of the physical volume, from that of the label.
    pub(crate) offset: U32,
    pub(crate) kind: [u8; 8],
}

/// Header of a physical volume; lists of areas of data and of metadata follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) uuid: [u8; 32],
    pub(crate) device_len: U64,
}

/// An area; zeros end a list.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Area {
    pub(crate) at: U64,
    pub(crate) len: U64,
}

/// At the start of an area of metadata.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct AreaHeader {
    pub(crate) checksum: U32,
    pub(crate) magic: [u8; 16],
    pub(crate) version: U32,
    pub(crate) start: U64,
    pub(crate) len: U64,
    /// The text that counts, from the start of the area.
    pub(crate) text_at: U64,
    pub(crate) text_len: U64,
    pub(crate) text_checksum: U32,
    pub(crate) flags: U32,
}

const _: () = assert!(size_of::<Label>() == 32);
const _: () = assert!(size_of::<Header>() == 40);
const _: () = assert!(size_of::<AreaHeader>() == 64);

/// Length of the header of an area, where its text starts again after the end.
pub(crate) const AREA_HEADER_LEN: usize = 512;
/// Set for an area that is not used.
pub(crate) const IGNORED: u32 = 1;
pub(crate) const SECTOR_LEN: u64 = 512;

//! Raw structures of VHDX, little-endian. Source: Microsoft's [MS-VHDX].

use crate::guid::guid;
use std::mem::size_of;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(super) const SIGNATURE: [u8; 8] = *b"vhdxfile";

/// Offsets of the two headers and of the two tables of regions.
pub(super) const HEADERS: [u64; 2] = [64 << 10, 128 << 10];
pub(super) const REGION_TABLES: [u64; 2] = [192 << 10, 256 << 10];
/// Length of either, and of the table of metadata.
pub(super) const HEADER_LEN: usize = 4 << 10;
pub(super) const TABLE_LEN: usize = 64 << 10;
/// Place of the checksum in headers, tables of regions, and entries of the log.
pub(super) const CHECKSUM: std::ops::Range<usize> = 4..8;

/// A header; zeros fill it up to 4 KiB.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Header {
    pub(super) signature: [u8; 4],
    pub(super) checksum: U32,
    pub(super) sequence: U64,
    pub(super) file_guid: [u8; 16],
    pub(super) data_guid: [u8; 16],
    pub(super) log_guid: [u8; 16],
    pub(super) log_version: U16,
    pub(super) version: U16,
    pub(super) log_len: U32,
    pub(super) log_at: U64,
}

/// At the start of a table of regions.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct RegionTable {
    pub(super) signature: [u8; 4],
    pub(super) checksum: U32,
    pub(super) count: U32,
    pub(super) reserved: U32,
}

/// A row of it.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Region {
    pub(super) guid: [u8; 16],
    pub(super) at: U64,
    pub(super) len: U32,
    pub(super) required: U32,
}

/// At the start of the table of metadata.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct MetadataTable {
    pub(super) signature: [u8; 8],
    pub(super) reserved: U16,
    pub(super) count: U16,
    pub(super) reserved2: [U32; 5],
}

/// A row of it; its offset counts from the start of the region.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Item {
    pub(super) guid: [u8; 16],
    pub(super) at: U32,
    pub(super) len: U32,
    pub(super) flags: U32,
    pub(super) reserved: U32,
}

/// At the start of an entry of the log.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct LogEntry {
    pub(super) signature: [u8; 4],
    pub(super) checksum: U32,
    pub(super) len: U32,
    pub(super) tail: U32,
    pub(super) sequence: U64,
    pub(super) count: U32,
    pub(super) reserved: U32,
    pub(super) log_guid: [u8; 16],
    pub(super) flushed_len: U64,
    pub(super) last_len: U64,
}

/// A change: a sector of data, or zeros.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct LogChange {
    pub(super) signature: [u8; 4],
    /// Last four bytes of a sector.
    pub(super) trailing: [u8; 4],
    /// First eight bytes of a sector, or the number of zeros.
    pub(super) leading: U64,
    pub(super) at: U64,
    pub(super) sequence: U64,
}

const _: () = assert!(size_of::<Header>() == 80);
const _: () = assert!(size_of::<RegionTable>() == 16);
const _: () = assert!(size_of::<Region>() == 32);
const _: () = assert!(size_of::<MetadataTable>() == 32);
const _: () = assert!(size_of::<Item>() == 32);
const _: () = assert!(size_of::<LogEntry>() == 64);
const _: () = assert!(size_of::<LogChange>() == 32);

pub(super) const LOG_SECTOR: usize = 4096;

pub(super) const REGION_BAT: [u8; 16] =
    guid(0x2dc2_7766, 0xf623, 0x4200, [0x9d, 0x64, 0x11, 0x5e, 0x9b, 0xfd, 0x4a, 0x08]);
pub(super) const REGION_METADATA: [u8; 16] =
    guid(0x8b7c_a206, 0x4790, 0x4b9a, [0xb8, 0xfe, 0x57, 0x5f, 0x05, 0x0f, 0x88, 0x6e]);
pub(super) const ITEM_FILE: [u8; 16] =
    guid(0xcaa1_6737, 0xfa36, 0x4d43, [0xb3, 0xb6, 0x33, 0xf0, 0xaa, 0x44, 0xe7, 0x6b]);
pub(super) const ITEM_DISK_LEN: [u8; 16] =
    guid(0x2fa5_4224, 0xcd1b, 0x4876, [0xb2, 0x11, 0x5d, 0xbe, 0xd8, 0x3b, 0xf4, 0xb8]);
pub(super) const ITEM_SECTOR_LEN: [u8; 16] =
    guid(0x8141_bf1d, 0xa96f, 0x4709, [0xba, 0x47, 0xf2, 0x33, 0xa8, 0xfa, 0xab, 0x5f]);
pub(super) const ITEM_PHYSICAL: [u8; 16] =
    guid(0xcda3_48c7, 0x445d, 0x4471, [0x9c, 0xc9, 0xe9, 0x88, 0x52, 0x51, 0xc5, 0x56]);
pub(super) const ITEM_PAGE_83: [u8; 16] =
    guid(0xbeca_12ab, 0xb2e6, 0x4523, [0x93, 0xef, 0xc3, 0x09, 0xe0, 0x00, 0xc7, 0x46]);
pub(super) const ITEM_PARENT: [u8; 16] =
    guid(0xa8d3_5f2d, 0xb30b, 0x454d, [0xab, 0xf7, 0xd3, 0xd8, 0x48, 0x34, 0xab, 0x0c]);

/// Flag of the file's parameters: the disk is the difference to another.
pub(super) const HAS_PARENT: u32 = 2;
/// Flag of an item that readers have to know.
pub(super) const ITEM_REQUIRED: u32 = 4;

/// Bits of an entry of the table of blocks.
pub(super) const STATE_MASK: u64 = 7;
pub(super) const OFFSET_MASK: u64 = !0xf_ffff;
pub(super) const BLOCK_NOT_PRESENT: u64 = 0;
pub(super) const BLOCK_UNDEFINED: u64 = 1;
pub(super) const BLOCK_ZERO: u64 = 2;
pub(super) const BLOCK_UNMAPPED: u64 = 3;
pub(super) const BLOCK_PRESENT: u64 = 6;
pub(super) const BLOCK_PARTIAL: u64 = 7;

//! Raw structures of VHDX, little-endian. Source: Microsoft's [MS-VHDX].

use crate::guid::guid;
use packfs_format::disk;
use zerocopy::little_endian::{U16, U32, U64};

pub(super) const SIGNATURE: [u8; 8] = *b"vhdxfile";

/// Offsets of the two headers and of the two region tables.
pub(super) const HEADERS: [u64; 2] = [64 << 10, 128 << 10];
pub(super) const REGION_TABLES: [u64; 2] = [192 << 10, 256 << 10];
/// Length of a header, and of the metadata table.
pub(super) const HEADER_LEN: usize = 4 << 10;
pub(super) const TABLE_LEN: usize = 64 << 10;
/// Position of the checksum in headers, region tables, and log entries.
pub(super) const CHECKSUM: std::ops::Range<usize> = 4..8;

disk! {
    /// Header; zeros pad it to 4 KiB.
    struct Header (80) {
        signature: [u8; 4], checksum: U32, sequence: U64, file_guid: [u8; 16], data_guid: [u8; 16],
        log_guid: [u8; 16], log_version: U16, version: U16, log_len: U32, log_at: U64,
    }

    /// Header of a region table.
    struct RegionTable (16) { signature: [u8; 4], checksum: U32, count: U32, reserved: U32 }

    /// Row of a region table.
    struct Region (32) { guid: [u8; 16], at: U64, len: U32, required: U32 }

    /// Header of the metadata table.
    struct MetadataTable (32) { signature: [u8; 8], reserved: U16, count: U16, reserved2: [U32; 5] }

    /// Row of the metadata table; its offset is relative to the region.
    struct Item (32) { guid: [u8; 16], at: U32, len: U32, flags: U32, reserved: U32 }

    /// Header of a log entry.
    struct LogEntry (64) {
        signature: [u8; 4], checksum: U32, len: U32, tail: U32, sequence: U64, count: U32,
        reserved: U32, log_guid: [u8; 16], flushed_len: U64, last_len: U64,
    }

    /// A change: a sector of data, or zeros.
    struct LogChange (32) {
        signature: [u8; 4],
        /// Last four bytes of a sector.
        trailing: [u8; 4],
        /// First eight bytes of a sector, or the number of zeros.
        leading: U64,
        at: U64, sequence: U64,
    }
}

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

/// Flag of the file parameters: differencing disk.
pub(super) const HAS_PARENT: u32 = 2;
/// Flag of an item that readers must support.
pub(super) const ITEM_REQUIRED: u32 = 4;

/// Bits of an entry of the block table.
pub(super) const STATE_MASK: u64 = 7;
pub(super) const OFFSET_MASK: u64 = !0xf_ffff;
pub(super) const BLOCK_NOT_PRESENT: u64 = 0;
pub(super) const BLOCK_UNDEFINED: u64 = 1;
pub(super) const BLOCK_ZERO: u64 = 2;
pub(super) const BLOCK_UNMAPPED: u64 = 3;
pub(super) const BLOCK_PRESENT: u64 = 6;
pub(super) const BLOCK_PARTIAL: u64 = 7;

//! Raw structures of VMDK, little-endian. Source: VMware's Virtual Disk Format 5.0.

use packfs_format::disk;
use zerocopy::little_endian::{U16, U32, U64};

pub(super) const MAGIC: [u8; 4] = *b"KDMV";

disk! {
    /// Header of the file, and again its footer. Sizes and offsets are in sectors.
    struct Header (79) {
        magic: [u8; 4], version: U32, flags: U32, capacity: U64, grain_size: U64,
        descriptor_offset: U64, descriptor_size: U64, rows_per_table: U32, rgd_offset: U64,
        gd_offset: U64, overhead: U64, unclean: u8, newlines: [u8; 4], compression: U16,
    }

    /// Header of a compressed grain.
    struct GrainHead (12) {
        first: U64,
        /// Number of bytes that follow.
        len: U32,
    }
}

/// Flags: a second directory with tables, zeroed grains, compressed grains, grain headers.
pub(super) const HAS_COPY: u32 = 1 << 1;
pub(super) const ZERO_GRAINS: u32 = 1 << 2;
pub(super) const COMPRESSED: u32 = 1 << 16;
pub(super) const MARKERS: u32 = 1 << 17;

/// Offset of a directory that the footer contains.
pub(super) const GD_AT_END: u64 = u64::MAX;
pub(super) const DEFLATE: u16 = 1;
pub(super) const NEWLINES: [u8; 4] = *b"\n \r\n";

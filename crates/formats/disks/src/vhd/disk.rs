//! Raw structures of VHD, big-endian. Source: Microsoft's Virtual Hard Disk Image Format
//! Specification of 2006.

use packfs_format::disk;
use std::ops::Range;
use zerocopy::big_endian::{U16, U32, U64};

pub(super) const COOKIE: [u8; 8] = *b"conectix";
pub(super) const DYNAMIC_COOKIE: [u8; 8] = *b"cxsparse";

disk! {
    /// Footer at the end of the file; dynamic disks start with a copy.
    struct Footer (512) {
        cookie: [u8; 8], features: U32, version: U32, data_offset: U64, made_at: U32,
        creator: [u8; 12], original_size: U64, current_size: U64, geometry: U32, disk_type: U32,
        checksum: U32, uuid: [u8; 16], saved_state: u8, reserved: [u8; 427],
    }

    /// Header at the data offset of the footer.
    struct DynamicHeader (1024) {
        cookie: [u8; 8], data_offset: U64, table_offset: U64, version: U32, max_table_entries: U32,
        block_size: U32, checksum: U32, parent_unique_id: [u8; 16], parent_time_stamp: U32,
        reserved: U32,
        /// UTF-16, up to the first zero.
        parent_unicode_name: [U16; 256],
        parent_locators: [u8; 192], reserved2: [u8; 256],
    }
}

/// Positions of the checksums in their structures.
pub(super) const FOOTER_CHECKSUM: Range<usize> = 64..68;
pub(super) const HEADER_CHECKSUM: Range<usize> = 36..40;

pub(super) const FIXED: u32 = 2;
pub(super) const DYNAMIC: u32 = 3;
pub(super) const DIFFERENCING: u32 = 4;
/// Entry of a block that is not stored.
pub(super) const NO_BLOCK: u32 = u32::MAX;

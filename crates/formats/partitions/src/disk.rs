//! Raw structures of partition tables, little-endian.
//!
//! Owns layout and numbers; the reader checks which values are allowed. Sources: UEFI specification
//! 2.10, chapter 5, for both; Linux's `block/partitions/msdos.c` for chains of logical partitions.

use packfs_format::disk;
use zerocopy::little_endian::{U16, U32, U64};

/// End of a boot record.
pub(crate) const MBR_SIGNATURE: u16 = 0xaa55;
/// Sector length of an MBR. Disks with longer sectors use those as the unit, which the table does
/// not record.
pub(crate) const SECTOR_LEN: u64 = 512;

disk! {
    /// One of four partitions of a boot record.
    struct MbrEntry (16) {
        /// 0x80 for the active partition, else 0.
        status: u8,
        first_chs: [u8; 3], kind: u8, last_chs: [u8; 3], first: U32, count: U32,
    }

    /// First sector of a disk, or of each link of a chain of logical partitions.
    struct BootRecord (512) {
        code: [u8; 440], disk_id: U32, reserved: U16, entries: [MbrEntry; 4], signature: U16,
    }
}

/// Types of partitions that contain a chain of others.
pub(crate) const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
/// Type of the partition that protects a GPT.
pub(crate) const PROTECTIVE: u8 = 0xee;

pub(crate) const GPT_SIGNATURE: [u8; 8] = *b"EFI PART";

disk! {
    /// Header in the second sector of a disk, and in its last.
    struct GptHeader (92) {
        signature: [u8; 8], revision: U32, header_size: U32,
        /// CRC-32 of the header with zeros in this field.
        header_crc: U32,
        reserved: U32, my_lba: U64, alternate_lba: U64, first_usable: U64, last_usable: U64,
        disk_guid: [u8; 16], entries_lba: U64, entry_count: U32, entry_size: U32, entries_crc: U32,
    }
}

pub(crate) const HEADER_CRC_AT: usize = 16;

disk! {
    /// A partition of a GPT.
    struct GptEntry (128) {
        /// All zeros for an unused row.
        kind: [u8; 16],
        guid: [u8; 16], first: U64,
        /// The last sector, inclusive.
        last: U64,
        attributes: U64,
        /// UTF-16, up to the first zero.
        name: [U16; 36],
    }
}

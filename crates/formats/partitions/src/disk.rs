//! Raw structures of partition tables, byte for byte as they lie on disk, little-endian.
//!
//! Owns layout and numbers; says nothing about which values are allowed. Sources: UEFI
//! specification 2.10, chapter 5, for both; Linux's `block/partitions/msdos.c` for chains of
//! logical partitions.

use std::mem::size_of;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// At the end of a boot record.
pub(crate) const MBR_SIGNATURE: u16 = 0xaa55;
/// Sector length of an MBR. Disks with longer sectors count in those, which the table does not
/// record.
pub(crate) const SECTOR_LEN: u64 = 512;

/// One of four partitions of a boot record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct MbrEntry {
    /// 0x80 for the one to boot from, else 0.
    pub(crate) status: u8,
    pub(crate) first_chs: [u8; 3],
    pub(crate) kind: u8,
    pub(crate) last_chs: [u8; 3],
    pub(crate) first: U32,
    pub(crate) count: U32,
}

/// The first sector of a disk, or of each link of a chain of logical partitions.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct BootRecord {
    pub(crate) code: [u8; 440],
    pub(crate) disk_id: U32,
    pub(crate) reserved: U16,
    pub(crate) entries: [MbrEntry; 4],
    pub(crate) signature: U16,
}

/// Partitions that hold a chain of others.
pub(crate) const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
/// The one that keeps others off a disk with a GPT.
pub(crate) const PROTECTIVE: u8 = 0xee;

/// `EFI PART`.
pub(crate) const GPT_SIGNATURE: [u8; 8] = *b"EFI PART";

/// In the second sector of a disk, and in its last.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct GptHeader {
    pub(crate) signature: [u8; 8],
    pub(crate) revision: U32,
    pub(crate) header_size: U32,
    /// CRC-32 of the header with zeros here.
    pub(crate) header_crc: U32,
    pub(crate) reserved: U32,
    pub(crate) my_lba: U64,
    pub(crate) alternate_lba: U64,
    pub(crate) first_usable: U64,
    pub(crate) last_usable: U64,
    pub(crate) disk_guid: [u8; 16],
    pub(crate) entries_lba: U64,
    pub(crate) entry_count: U32,
    pub(crate) entry_size: U32,
    pub(crate) entries_crc: U32,
}

/// Offset of the header's own checksum in it.
pub(crate) const HEADER_CRC_AT: usize = 16;

/// A partition of a GPT.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct GptEntry {
    /// All zeros for a row that is not in use.
    pub(crate) kind: [u8; 16],
    pub(crate) guid: [u8; 16],
    pub(crate) first: U64,
    /// The last sector itself, not the one after it.
    pub(crate) last: U64,
    pub(crate) attributes: U64,
    /// UTF-16, up to the first zero.
    pub(crate) name: [U16; 36],
}

const _: () = assert!(size_of::<MbrEntry>() == 16);
const _: () = assert!(size_of::<BootRecord>() == 512);
const _: () = assert!(size_of::<GptHeader>() == 92);
const _: () = assert!(size_of::<GptEntry>() == 128);

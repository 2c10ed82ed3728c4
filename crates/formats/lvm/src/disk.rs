//! Raw structures of LVM2, little-endian. Source: `label.h`, `layout.h` and `format-text` of LVM2.

use packfs_format::disk;
use zerocopy::little_endian::{U32, U64};

pub(crate) const LABEL: [u8; 8] = *b"LABELONE";
pub(crate) const LABEL_KIND: [u8; 8] = *b"LVM2 001";
pub(crate) const AREA_MAGIC: [u8; 16] = *b" LVM2 x[5A%r0N*>";
pub(crate) const CHECKSUM_SEED: u32 = 0xf597_a6cf;

disk! {
    /// Label in one of the first four sectors.
    struct Label (32) {
        id: [u8; 8], sector: U64,
        /// Checksum of the rest of the sector, starting at `offset`.
        checksum: U32,
        /// Start of the header of the physical volume, relative to the label.
        offset: U32,
        kind: [u8; 8],
    }

    /// Header of a physical volume; lists of areas of data and of metadata follow.
    struct Header (40) { uuid: [u8; 32], device_len: U64 }

    /// An area; zeros end a list.
    struct Area (16) { at: U64, len: U64 }

    /// Header of a metadata area.
    struct AreaHeader (64) {
        checksum: U32, magic: [u8; 16], version: U32, start: U64, len: U64,
        /// Offset of the current text in the area.
        text_at: U64,
        text_len: U64, text_checksum: U32, flags: U32,
    }
}

/// Length of the header of an area, after which its text continues when it wraps around.
pub(crate) const AREA_HEADER_LEN: usize = 512;
/// Flag of an area that is not used.
pub(crate) const IGNORED: u32 = 1;
pub(crate) const SECTOR_LEN: u64 = 512;

//! Raw structures of Android sparse images, little-endian. Source: `sparse_format.h` of Android's
//! libsparse.

use packfs_format::disk;
use zerocopy::little_endian::{U16, U32};

pub(super) const MAGIC: u32 = 0xed26_ff3a;

disk! {
    /// Header of the file.
    struct Header (28) {
        magic: U32, major_version: U16, minor_version: U16, header_size: U16,
        chunk_header_size: U16, block_size: U32, block_count: U32, chunk_count: U32, checksum: U32,
    }

    /// Header of a chunk.
    struct Chunk (12) {
        kind: U16, reserved: U16,
        block_count: U32,
        /// Bytes in the file, including this header.
        total_size: U32,
    }
}

pub(super) const KIND_RAW: u16 = 0xcac1;
pub(super) const KIND_FILL: u16 = 0xcac2;
pub(super) const KIND_DONT_CARE: u16 = 0xcac3;
pub(super) const KIND_CRC32: u16 = 0xcac4;

//! Raw structures of Android sparse images, little-endian. Source: `sparse_format.h` of Android's
//! libsparse.

use std::mem::size_of;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(super) const MAGIC: u32 = 0xed26_ff3a;

/// At the start of the file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Header {
    pub(super) magic: U32,
    pub(super) major_version: U16,
    pub(super) minor_version: U16,
    pub(super) header_size: U16,
    pub(super) chunk_header_size: U16,
    pub(super) block_size: U32,
    pub(super) block_count: U32,
    pub(super) chunk_count: U32,
    pub(super) checksum: U32,
}

/// Before the data of a chunk.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Chunk {
    pub(super) kind: U16,
    pub(super) reserved: U16,
    /// Blocks of the disk.
    pub(super) block_count: U32,
    /// Bytes in the file, with this header.
    pub(super) total_size: U32,
}

pub(super) const KIND_RAW: u16 = 0xcac1;
pub(super) const KIND_FILL: u16 = 0xcac2;
pub(super) const KIND_DONT_CARE: u16 = 0xcac3;
pub(super) const KIND_CRC32: u16 = 0xcac4;

const _: () = assert!(size_of::<Header>() == 28);
const _: () = assert!(size_of::<Chunk>() == 12);

//! Raw structures of VDI, little-endian. Source: QEMU's `block/vdi.c`, and images of both.

use std::mem::size_of;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(super) const SIGNATURE: [u8; 4] = [0x7f, 0x10, 0xda, 0xbe];

/// At the start of the file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Header {
    pub(super) text: [u8; 64],
    pub(super) signature: [u8; 4],
    pub(super) version: U32,
    pub(super) header_size: U32,
    pub(super) image_type: U32,
    pub(super) image_flags: U32,
    pub(super) description: [u8; 256],
    pub(super) offset_blocks: U32,
    pub(super) offset_data: U32,
    pub(super) geometry: [U32; 4],
    pub(super) unused: U32,
    pub(super) disk_size: U64,
    pub(super) block_size: U32,
    /// Bytes before the data of each block.
    pub(super) block_extra: U32,
    pub(super) blocks_in_image: U32,
    pub(super) blocks_allocated: U32,
    pub(super) uuid_image: [u8; 16],
    pub(super) uuid_last_snapshot: [u8; 16],
    pub(super) uuid_link: [u8; 16],
    pub(super) uuid_parent: [u8; 16],
}

const _: () = assert!(size_of::<Header>() == 456);

pub(super) const KIND_DYNAMIC: u32 = 1;
pub(super) const KIND_FIXED: u32 = 2;
/// Entries from here on are blocks that read as zeros: 0xfffffffe was discarded, 0xffffffff never
/// written.
pub(super) const NO_BLOCK: u32 = 0xffff_fffe;

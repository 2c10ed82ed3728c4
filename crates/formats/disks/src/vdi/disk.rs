//! Raw structures of VDI, little-endian. Source: QEMU's `block/vdi.c`, and images of both programs.

use packfs_format::disk;
use zerocopy::little_endian::{U32, U64};

pub(super) const SIGNATURE: [u8; 4] = [0x7f, 0x10, 0xda, 0xbe];

disk! {
    /// Header of the file.
    struct Header (456) {
        text: [u8; 64], signature: [u8; 4], version: U32, header_size: U32, image_type: U32,
        image_flags: U32, description: [u8; 256], offset_blocks: U32, offset_data: U32,
        geometry: [U32; 4], unused: U32, disk_size: U64, block_size: U32,
        /// Bytes before the data of each block.
        block_extra: U32,
        blocks_in_image: U32, blocks_allocated: U32, uuid_image: [u8; 16],
        uuid_last_snapshot: [u8; 16], uuid_link: [u8; 16], uuid_parent: [u8; 16],
    }
}

pub(super) const KIND_DYNAMIC: u32 = 1;
pub(super) const KIND_FIXED: u32 = 2;
/// First entry of blocks that read as zeros: 0xfffffffe was discarded, 0xffffffff never written.
pub(super) const NO_BLOCK: u32 = 0xffff_fffe;

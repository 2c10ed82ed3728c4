//! Faults of a VDI image and their messages: offset, value found, values allowed.

use packfs_format::{TRUNCATED, faults};

faults! {
    pub(super) enum Corruption in "vdi image" {}

    Short { len: u64 } = "the file is {len} bytes long, 456 needed for a header" => hint TRUNCATED;
    Signature = "no 0xbeda107f at 0x40";
    BlockSize { found: u32 } = "header: blocks of {found} bytes, powers of two from 512 to 67108864 allowed";
    DiskLength { found: u64, room: u64 } = "header: a disk of {found} bytes, but the map has room for {room}";
    MapEnd { at: u64, rows: u64, limit: u64 } =
        "block map at {at:#x}: {rows} entries, which have to end by {limit:#x}" => hint TRUNCATED;
    BlockPlace { block: u64, at: u64, limit: u64 } =
        "block {block}: is at {at:#x}, but the file ends at {limit:#x}" => hint TRUNCATED;
}

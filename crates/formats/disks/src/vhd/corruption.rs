//! Faults of a VHD image and their messages: offset, value found, values allowed.

use packfs_format::{TRUNCATED, faults};

faults! {
    pub(super) enum Corruption in "vhd image" {}

    Signature = "no footer with \"conectix\" at the end or at 0x0" => hint TRUNCATED;
    FooterChecksum { found: u32, computed: u32 } =
        "footer: checksum {found:#010x}, but it is {computed:#010x}, and there is no sound copy";
    DiskType { found: u32 } = "footer: type {found}, 2 (fixed), 3 (dynamic), and 4 (differencing) allowed";
    DiskLength { found: u64, room: u64 } = "footer: a disk of {found} bytes, but there is room for {room}"
        => hint TRUNCATED;
    HeaderPlace { at: u64, limit: u64 } =
        "header at {at:#x}: 1024 bytes, which have to end by {limit:#x}" => hint TRUNCATED;
    HeaderSignature { at: u64 } = "header at {at:#x}: no \"cxsparse\"";
    HeaderChecksum { at: u64, found: u32, computed: u32 } =
        "header at {at:#x}: checksum {found:#010x}, but it is {computed:#010x}";
    BlockSize { found: u32 } = "header: block size {found}, powers of two from 512 to 268435456 allowed";
    TableEnd { at: u64, rows: u64, limit: u64 } =
        "block table at {at:#x}: {rows} entries, which have to end by {limit:#x}" => hint TRUNCATED;
    BlockPlace { block: u64, at: u64, limit: u64 } =
        "block {block}: is at {at:#x}, but the file ends at {limit:#x}" => hint TRUNCATED;
}

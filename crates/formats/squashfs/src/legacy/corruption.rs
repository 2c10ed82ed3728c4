//! Faults of SquashFS 1.0 to 3.1 and their messages: offset, value found, values allowed.
//! [`crate::MetadataFault`] has those of all versions.

use crate::Place;
use packfs_format::{TRUNCATED, faults};

faults! {
    pub(crate) enum Corruption in "squashfs image" {}

    Short { len: u64, wanted: usize } =
        "superblock: {len} bytes in the file, {wanted} needed" => hint TRUNCATED;
    Magic { found: u32 } = "superblock at 0x0: magic {found:#010x}, none of an old squashfs image";
    Truncated { bytes_used: u64, len: u64 } =
        "superblock: the image is {bytes_used} bytes long, the file only {len}" => hint TRUNCATED;
    BytesUsed { found: u64, min: u64 } = "superblock: image length {found}, at least {min} allowed";
    BlockSize { found: u32, min: u32, max: u32 } =
        "superblock: block size {found}, powers of two from {min} to {max} allowed";
    InodeType { place: Place, found: u16 } = "{place}: type {found}, which its version does not have";
    IdIndex { place: Place, table: &'static str, found: u16, count: u32 } =
        "{place}: owner index {found}, the image has {count} {table}";
    SizeWord { place: Place, found: u32, max: u32 } =
        "{place}: block size word {found:#x}, lengths from 1 to {max} and the bit 0x1000000 allowed";
    LinkLength { place: Place } = "{place}: link target of 0 bytes";
}

//! Faults of an image and their messages: offset, value found, values allowed.

use packfs_format::{TRUNCATED, faults};

faults! {
    pub(crate) enum Corruption in "romfs image" {}

    Short { len: u64, min: u64 } = "{len} bytes, at least {min} needed" => hint TRUNCATED;
    Magic = "superblock: begins with other bytes than -rom1fs-";
    Length { found: u64, min: u64, max: u64 } =
        "superblock: image of {found} bytes, {min} to {max} allowed" => hint TRUNCATED;
    Sum { found: u32 } = "superblock: checksum: words add up to {found:#x}, 0 allowed";
    HeaderPlace { at: u64, end: u64 } =
        "file header at {at:#x}: multiples of 16 from 0x10 up to {end:#x} allowed";
    HeaderSum { at: u64, found: u32 } =
        "file header at {at:#x}: checksum: words add up to {found:#x}, 0 allowed";
    NameEnd { at: u64, max: usize } = "header at {at:#x}: name without an end within {max} bytes";
    Name { at: u64, fault: &'static str } = "file header at {at:#x}: name: {fault}";
    Dot { at: u64 } = "file header at {at:#x}: named \".\", but leads elsewhere than to its directory";
    DotDot { at: u64 } = "file header at {at:#x}: named \"..\", but is no hard link to a directory";
    Next { at: u64, found: u64 } =
        "file header at {at:#x}: the next is at {found:#x}, a later offset or 0 allowed";
    DataRange { at: u64, start: u64, len: u64, end: u64 } =
        "file header at {at:#x}: data of {len} bytes at {start:#x}, up to {end:#x} allowed";
    LinkTarget { at: u64, target: u64 } =
        "file header at {at:#x}: hard link to {target:#x}, which is one itself; a file or directory allowed";
    SymlinkLength { at: u64, found: u64, max: u64 } =
        "file header at {at:#x}: link target of {found} bytes, 1 to {max} allowed";
    SymlinkNul { at: u64 } = "file header at {at:#x}: link target with a NUL byte";
    Kind { at: u64, wanted: &'static str } = "file header at {at:#x}: not a {wanted}";
}

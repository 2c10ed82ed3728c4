//! Faults of an image and their messages: offset, value found, values allowed.

use crate::disk::{NAME_LEN_MAX, SUPER_LEN};
use packfs_codec::Algorithm;
use packfs_codec::DecodeError;
pub(crate) use packfs_format::FaultPlace as Place;
use packfs_format::{TRUNCATED, faults};

faults! {
    pub(crate) enum Corruption in "cramfs image" {}

    Sum { found: u32, wanted: u32 } = "checksum {found:08x}, but the superblock says {wanted:08x}";
    Short { len: u64 } = "superblock: {len} bytes in the file, {SUPER_LEN} needed" => hint TRUNCATED;
    Magic { found: u32 } = "superblock: magic {found:#010x} at 0x0, 0x28cd3d45 allowed there or at 0x200";
    Truncated { size: u64, len: u64 } =
        "superblock: the image is {size} bytes long, the file only {len}" => hint TRUNCATED;
    Size { found: u64, min: u64 } = "superblock: image length {found}, at least {min} allowed";
    RootType { found: u16 } = "superblock: the root's mode is {found:#o}, no directory's";
    RootOffset { found: u64, min: u64 } =
        "superblock: the root's entries start at {found:#x}, {min:#x} allowed";
    InodePlace { place: Place, min: u64, end: u64 } =
        "{place}: no inode can start there, {min:#x} up to {end:#x} allowed";
    InodeType { place: Place, found: u16 } = "{place}: mode {found:#o}, of no file type";
    ListingRange { place: Place, start: u64, len: u64, min: u64, end: u64 } =
        "{place}: entries of {len} bytes at {start:#x}, {min:#x} up to {end:#x} allowed";
    ListingEnd { place: Place, left: u32, wanted: u32 } =
        "{place}: {wanted} bytes wanted, but the directory's size leaves {left}";
    EntryName { place: Place, fault: &'static str } =
        "{place}: {fault}, 1 to {NAME_LEN_MAX} bytes without slash and NUL allowed";
    PointerRange { place: Place, start: u64, len: u64, min: u64, end: u64 } =
        "{place}: block pointers of {len} bytes at {start:#x}, {min:#x} up to {end:#x} allowed";
    PointerOrder { place: Place, found: u64, start: u64 } =
        "{place}: the block ends at {found:#x}, but starts at {start:#x}";
    BlockLength { place: Place, found: u64, max: u64 } =
        "{place}: block of {found} bytes, at most {max} allowed";
    DataRange { place: Place, start: u64, len: u64, min: u64, end: u64 } =
        "{place}: data of {len} bytes at {start:#x}, {min:#x} up to {end:#x} allowed";
    LinkLength { place: Place, found: u32 } =
        "{place}: link target of {found} bytes, 1 to {LINK_LEN_MAX} allowed";
    LinkNul { place: Place } = "{place}: link target with a NUL byte";
    LinkDecode { place: Place, algorithm: Algorithm, reason: DecodeError } =
        "{place}: link target: {algorithm}: {reason}" => decode reason;
    LinkDecodedLength { place: Place, found: usize, wanted: u32 } =
        "{place}: link target: a block decodes to {found} bytes, {wanted} allowed";
    Overlap { place: Place } =
        "{place}: listings overlap: together they are longer than the image";
}

/// Longest target of a symbolic link; the kernel's limit is a page.
pub(crate) const LINK_LEN_MAX: u32 = 65_535;

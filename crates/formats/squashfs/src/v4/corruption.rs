//! Faults of SquashFS 4.0 and their messages: offset, value found, values allowed.
//! [`crate::MetadataFault`] has those of all versions.

use crate::Place;
use packfs_format::{TRUNCATED, faults};

/// Fault of an empty set of attributes.
pub(crate) const NO_XATTRS: &str = "no attributes in it";
/// Fault of attributes without a known namespace.
pub(crate) const UNKNOWN_XATTRS: &str = "attributes with an unknown prefix";

faults! {
    pub(crate) enum Corruption in "squashfs image" {}

    Short { len: u64 } = "superblock: {len} bytes in the file, 96 needed" => hint TRUNCATED;
    Magic { found: u32 } = "superblock at 0x0: magic {found:#010x}, 0x73717368 (hsqs) allowed";
    StreamedEnd { at: u64, found: u32 } =
        "superblock at {at:#x} of a streamed image: magic {found:#010x}, 0x73717368 (hsqs) allowed"
            => hint "a streamed image ends with its superblock; this one is truncated or has data after it";
    Truncated { bytes_used: u64, len: u64 } =
        "superblock: the image is {bytes_used} bytes long, the file only {len}" => hint TRUNCATED;
    BytesUsed { found: u64 } = "superblock: image length {found}, at least 96 allowed";
    BlockSize { found: u32 } = "superblock: block size {found}, powers of two from 4096 to 1048576 allowed";
    BlockLog { found: u16, block_size: u32 } =
        "superblock: block log {found} does not go with block size {block_size}";
    NoIds = "superblock: id count 0, at least 1 allowed";
    NoXattrIds { at: u64 } = "xattr id table at {at:#x}: 0 rows, at least 1 allowed";
    TableAbsent { table: &'static str, rows: u64 } =
        "superblock: {rows} rows in the {table}, which is absent";
    InodeType { place: Place, found: u16 } = "{place}: type {found}, 1 to 14 allowed";
    IdIndex { place: Place, found: u16, count: u32 } =
        "{place}: owner index {found}, the image has {count} ids";
    SizeWord { place: Place, found: u32, max: u32 } =
        "{place}: block size word {found:#x}, lengths up to {max} and the bit 0x1000000 allowed";
    LinkLength { place: Place, found: u32 } =
        "{place}: link target of {found} bytes, 1 to {LINK_LEN_MAX} allowed";
    XattrIndex { place: Place, found: u32, count: u32 } =
        "{place}: xattr set {found}, the image has {count} sets";
    XattrCount { place: Place, found: u32, max: u64 } =
        "{place}: {found} attributes, the xattr table can hold {max}";
    XattrName { place: Place, fault: &'static str } = "{place}: {fault}";
    XattrSet { place: Place, index: u32, fault: &'static str } = "{place}: xattr set {index}: {fault}";
    XattrTwice { place: Place } = "{place}: a second attribute of that name";
    XattrReference { place: Place, found: u32 } = "{place}: reference to a value of {found} bytes, 8 allowed";
    XattrValue { place: Place, found: u32 } =
        "{place}: value of {found} bytes, at most {XATTR_VALUE_LEN_MAX} allowed";
    XattrNames { place: Place } = "{place}: names of more than {XATTR_NAMES_LEN_MAX} bytes on one inode";
    XattrTotal { place: Place } = "{place}: values of more than {XATTR_TOTAL_LEN_MAX} bytes on one inode";
    OptionsLength { place: Place, found: u16, limit: u64 } =
        "{place}: {found} bytes, which have to end by {limit:#x}";
}

/// Longest value of an extended attribute (`XATTR_SIZE_MAX` of Linux's `limits.h`).
pub(crate) const XATTR_VALUE_LEN_MAX: u32 = 65_536;
/// Limit of an inode's names, each with its NUL (`XATTR_LIST_MAX`).
pub(crate) const XATTR_NAMES_LEN_MAX: usize = 65_536;
/// Limit of an inode's values. Kernels have no such limit; it keeps shared values from exhausting
/// memory.
pub(crate) const XATTR_TOTAL_LEN_MAX: usize = 64 << 20;
/// Longest target of a symbolic link; mksquashfs has the same limit, the kernel that of a page.
pub(crate) const LINK_LEN_MAX: u32 = 65_535;

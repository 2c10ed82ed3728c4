//! Every fault of an image that only this reader names, and how it is said: where, found, allowed.
//! Those that images of all generations can have are [`crate::MetadataFault`].
//!
//! Owns the wording; whoever meets a fault only fills in figures. All of them become
//! [`Error::corrupt`].

use crate::Place;
use packfs_core::Error;
use std::fmt;

/// A set of attributes that is none.
pub(crate) const NO_XATTRS: &str = "no attributes in it";
/// Attributes that cannot be named.
pub(crate) const UNKNOWN_XATTRS: &str = "attributes with a prefix that nobody knows";

/// A fault. Fields named `found` hold what the image says, the others what would be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corruption {
    /// The file is shorter than a superblock.
    Short {
        len: u64,
    },
    /// The magic is none of the known ones.
    Magic {
        found: u32,
    },
    /// A streamed image whose last 96 bytes are no superblock.
    StreamedEnd {
        at: u64,
        found: u32,
    },
    /// The image says it is longer than the file.
    Truncated {
        bytes_used: u64,
        len: u64,
    },
    /// The image says it is shorter than its own superblock.
    BytesUsed {
        found: u64,
    },
    BlockSize {
        found: u32,
    },
    BlockLog {
        found: u16,
        block_size: u32,
    },
    NoIds,
    NoXattrIds {
        at: u64,
    },
    /// A table is absent though the superblock counts rows of it.
    TableAbsent {
        table: &'static str,
        rows: u64,
    },
    InodeType {
        place: Place,
        found: u16,
    },
    IdIndex {
        place: Place,
        found: u16,
        count: u32,
    },
    SizeWord {
        place: Place,
        found: u32,
        max: u32,
    },
    LinkLength {
        place: Place,
        found: u32,
    },
    XattrIndex {
        place: Place,
        found: u32,
        count: u32,
    },
    XattrCount {
        place: Place,
        found: u32,
        max: u64,
    },
    XattrName {
        place: Place,
        fault: &'static str,
    },
    XattrSet {
        place: Place,
        index: u32,
        fault: &'static str,
    },
    XattrTwice {
        place: Place,
    },
    XattrReference {
        place: Place,
        found: u32,
    },
    XattrValue {
        place: Place,
        found: u32,
    },
    XattrNames {
        place: Place,
    },
    XattrTotal {
        place: Place,
    },
    OptionsLength {
        place: Place,
        found: u16,
        limit: u64,
    },
}

/// Longest value of an extended attribute, in bytes (`XATTR_SIZE_MAX` in the kernel's `limits.h`).
pub(crate) const XATTR_VALUE_LEN_MAX: u32 = 65_536;
/// Most bytes of names, each with its NUL, that one inode's attributes may have (`XATTR_LIST_MAX`).
pub(crate) const XATTR_NAMES_LEN_MAX: usize = 65_536;
/// Most bytes of values that one inode's attributes may have. No kernel sets this limit; it keeps
/// shared values from filling memory.
pub(crate) const XATTR_TOTAL_LEN_MAX: usize = 64 << 20;
/// Longest target of a symbolic link; mksquashfs has the same limit, the kernel stops at a page.
pub(crate) const LINK_LEN_MAX: u32 = 65_535;

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Corruption as C;
        match *self {
            C::Short { len } => write!(f, "superblock: {len} bytes in the file, 96 needed"),
            C::Magic { found } => {
                write!(f, "superblock at 0x0: magic {found:#010x}, 0x73717368 (hsqs) allowed")
            }
            C::StreamedEnd { at, found } => {
                write!(
                    f,
                    "superblock at {at:#x} of a streamed image: magic {found:#010x}, 0x73717368 (hsqs) allowed"
                )
            }
            C::Truncated { bytes_used, len } => {
                write!(f, "superblock: the image is {bytes_used} bytes long, the file only {len}")
            }
            C::BytesUsed { found } => write!(f, "superblock: image length {found}, at least 96 allowed"),
            C::BlockSize { found } => {
                write!(f, "superblock: block size {found}, powers of two from 4096 to 1048576 allowed")
            }
            C::BlockLog { found, block_size } => {
                write!(f, "superblock: block log {found} does not go with block size {block_size}")
            }
            C::NoIds => write!(f, "superblock: id count 0, at least 1 allowed"),
            C::NoXattrIds { at } => write!(f, "xattr id table at {at:#x}: 0 rows, at least 1 allowed"),
            C::TableAbsent { table, rows } => {
                write!(f, "superblock: {rows} rows in the {table}, which is absent")
            }
            C::InodeType { place, found } => write!(f, "{place}: type {found}, 1 to 14 allowed"),
            C::IdIndex { place, found, count } => {
                write!(f, "{place}: owner index {found}, the image has {count} ids")
            }
            C::SizeWord { place, found, max } => write!(
                f,
                "{place}: block size word {found:#x}, lengths up to {max} and the bit 0x1000000 allowed"
            ),
            C::LinkLength { place, found } => {
                write!(f, "{place}: link target of {found} bytes, 1 to {LINK_LEN_MAX} allowed")
            }
            C::XattrName { place, fault } => write!(f, "{place}: {fault}"),
            C::XattrIndex { place, found, count } => {
                write!(f, "{place}: xattr set {found}, the image has {count} sets")
            }
            C::XattrCount { place, found, max } => {
                write!(f, "{place}: {found} attributes, the xattr table can hold {max}")
            }
            C::XattrSet { place, index, fault } => write!(f, "{place}: xattr set {index}: {fault}"),
            C::XattrTwice { place } => write!(f, "{place}: a second attribute of that name"),
            C::XattrReference { place, found } => {
                write!(f, "{place}: reference to a value of {found} bytes, 8 allowed")
            }
            C::XattrValue { place, found } => {
                write!(f, "{place}: value of {found} bytes, at most {XATTR_VALUE_LEN_MAX} allowed")
            }
            C::XattrNames { place } => {
                write!(f, "{place}: names of more than {XATTR_NAMES_LEN_MAX} bytes on one inode")
            }
            C::XattrTotal { place } => {
                write!(f, "{place}: values of more than {XATTR_TOTAL_LEN_MAX} bytes on one inode")
            }
            C::OptionsLength { place, found, limit } => {
                write!(f, "{place}: {found} bytes, which have to end by {limit:#x}")
            }
        }
    }
}

impl From<Corruption> for Error {
    fn from(corruption: Corruption) -> Error {
        let error = Error::corrupt("squashfs image", corruption);
        match corruption {
            Corruption::Short { .. } | Corruption::Truncated { .. } => {
                error.hint("the file looks truncated; copy or download it again")
            }
            Corruption::StreamedEnd { .. } => error.hint(
                "a streamed image ends with its superblock; this one is cut off or has something behind it",
            ),
            _ => error,
        }
    }
}

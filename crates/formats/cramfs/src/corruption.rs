//! Every fault of an image that this reader names, and how it is said: where, found, allowed.
//!
//! Owns the wording; whoever meets a fault only fills in figures. All of them become
//! [`Error::corrupt`].

use crate::disk::{NAME_LEN_MAX, SUPER_LEN};
use packfs_codec::Algorithm;
use packfs_codec::DecodeError;
use packfs_core::Error;
use std::fmt;

/// Where in the image a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The structure, such as `inode` or `block pointer`.
    pub(crate) what: &'static str,
    /// Its offset in the image.
    pub(crate) at: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", self.what, self.at)
    }
}

/// A fault. Fields named `found` hold what the image says, the others what would be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corruption {
    /// The image's bytes have another checksum than the superblock says.
    Sum {
        found: u32,
        wanted: u32,
    },
    /// The file is shorter than a superblock.
    Short {
        len: u64,
    },
    /// No magic where one may stand.
    Magic {
        found: u32,
    },
    /// The image says it is longer than the file.
    Truncated {
        size: u64,
        len: u64,
    },
    /// The image says it ends in its own superblock.
    Size {
        found: u64,
        min: u64,
    },
    /// The root is no directory.
    RootType {
        found: u16,
    },
    /// The root's entries start where they may not.
    RootOffset {
        found: u64,
        min: u64,
    },
    /// An inode of which not all lies in the image.
    InodePlace {
        place: Place,
        min: u64,
        end: u64,
    },
    InodeType {
        place: Place,
        found: u16,
    },
    /// A directory's entries do not lie in the image.
    ListingRange {
        place: Place,
        start: u64,
        len: u64,
        min: u64,
        end: u64,
    },
    /// An entry is longer than what is left of its directory.
    ListingEnd {
        place: Place,
        left: u32,
        wanted: u32,
    },
    EntryName {
        place: Place,
        fault: &'static str,
    },
    /// A file's block pointers do not lie in the image.
    PointerRange {
        place: Place,
        start: u64,
        len: u64,
        min: u64,
        end: u64,
    },
    /// A block ends before it starts.
    PointerOrder {
        place: Place,
        found: u64,
        start: u64,
    },
    BlockLength {
        place: Place,
        found: u64,
        max: u64,
    },
    /// A block does not lie in the image.
    DataRange {
        place: Place,
        start: u64,
        len: u64,
        min: u64,
        end: u64,
    },
    LinkLength {
        place: Place,
        found: u32,
    },
    LinkNul {
        place: Place,
    },
    LinkDecode {
        place: Place,
        algorithm: Algorithm,
        reason: DecodeError,
    },
    /// A block of a link's target decodes to another length.
    LinkDecodedLength {
        place: Place,
        found: usize,
        wanted: u32,
    },
    /// Structures overlap so often that all together they are longer than the image.
    Overlap {
        place: Place,
    },
}

/// Longest target of a symbolic link; the kernel stops at a page.
pub(crate) const LINK_LEN_MAX: u32 = 65_535;

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Corruption as C;
        match *self {
            C::Short { len } => write!(f, "superblock: {len} bytes in the file, {SUPER_LEN} needed"),
            C::Sum { found, wanted } => {
                write!(f, "checksum {found:08x}, but the superblock says {wanted:08x}")
            }
            C::Magic { found } => {
                write!(f, "superblock: magic {found:#010x} at 0x0, 0x28cd3d45 allowed there or at 0x200")
            }
            C::Truncated { size, len } => {
                write!(f, "superblock: the image is {size} bytes long, the file only {len}")
            }
            C::Size { found, min } => write!(f, "superblock: image length {found}, at least {min} allowed"),
            C::RootType { found } => write!(f, "superblock: the root's mode is {found:#o}, no directory's"),
            C::RootOffset { found, min } => {
                write!(f, "superblock: the root's entries start at {found:#x}, {min:#x} allowed")
            }
            C::InodePlace { place, min, end } => {
                write!(f, "{place}: no inode can start there, {min:#x} up to {end:#x} allowed")
            }
            C::InodeType { place, found } => write!(f, "{place}: mode {found:#o}, of no file type"),
            C::ListingRange { place, start, len, min, end } => {
                write!(f, "{place}: entries of {len} bytes at {start:#x}, {min:#x} up to {end:#x} allowed")
            }
            C::ListingEnd { place, left, wanted } => {
                write!(f, "{place}: {wanted} bytes wanted, but the directory's size leaves {left}")
            }
            C::EntryName { place, fault } => {
                write!(f, "{place}: {fault}, 1 to {NAME_LEN_MAX} bytes without slash and NUL allowed")
            }
            C::PointerRange { place, start, len, min, end } => write!(
                f,
                "{place}: block pointers of {len} bytes at {start:#x}, {min:#x} up to {end:#x} allowed"
            ),
            C::PointerOrder { place, found, start } => {
                write!(f, "{place}: the block ends at {found:#x}, but starts at {start:#x}")
            }
            C::BlockLength { place, found, max } => {
                write!(f, "{place}: block of {found} bytes, at most {max} allowed")
            }
            C::DataRange { place, start, len, min, end } => {
                write!(f, "{place}: data of {len} bytes at {start:#x}, {min:#x} up to {end:#x} allowed")
            }
            C::LinkLength { place, found } => {
                write!(f, "{place}: link target of {found} bytes, 1 to {LINK_LEN_MAX} allowed")
            }
            C::LinkNul { place } => write!(f, "{place}: link target with a NUL byte"),
            C::LinkDecode { place, algorithm, reason } => {
                write!(f, "{place}: link target: {algorithm}: {reason}")
            }
            C::LinkDecodedLength { place, found, wanted } => {
                write!(f, "{place}: link target: a block decodes to {found} bytes, {wanted} allowed")
            }
            C::Overlap { place } => {
                write!(f, "{place}: with all read before, it is longer than the image; they must overlap")
            }
        }
    }
}

impl From<Corruption> for Error {
    fn from(corruption: Corruption) -> Error {
        if let Corruption::LinkDecode { reason, .. } = corruption {
            return reason.of("cramfs image", corruption);
        }
        let error = Error::corrupt("cramfs image", corruption);
        match corruption {
            Corruption::Short { .. } | Corruption::Truncated { .. } => {
                error.hint("the file looks truncated; copy or download it again")
            }
            _ => error,
        }
    }
}

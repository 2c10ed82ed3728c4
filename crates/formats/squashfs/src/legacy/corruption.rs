//! Every fault of an image that only this reader names, and how it is said: where, found, allowed.
//! Those that images of all generations can have are [`crate::MetadataFault`].
//!
//! Owns the wording; whoever meets a fault only fills in figures. All of them become
//! [`Error::corrupt`].

use crate::Place;
use packfs_core::Error;
use std::fmt;

/// A fault. Fields named `found` hold what the image says, the others what would be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corruption {
    /// The file is shorter than a superblock.
    Short {
        len: u64,
        wanted: usize,
    },
    /// The magic is none of the known ones.
    Magic {
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
        min: u64,
    },
    BlockSize {
        found: u32,
        min: u32,
        max: u32,
    },
    InodeType {
        place: Place,
        found: u16,
    },
    IdIndex {
        place: Place,
        table: &'static str,
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
    },
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Corruption as C;
        match *self {
            C::Short { len, wanted } => write!(f, "superblock: {len} bytes in the file, {wanted} needed"),
            C::Magic { found } => {
                write!(f, "superblock at 0x0: magic {found:#010x}, none of an old squashfs image")
            }
            C::Truncated { bytes_used, len } => {
                write!(f, "superblock: the image is {bytes_used} bytes long, the file only {len}")
            }
            C::BytesUsed { found, min } => {
                write!(f, "superblock: image length {found}, at least {min} allowed")
            }
            C::BlockSize { found, min, max } => {
                write!(f, "superblock: block size {found}, powers of two from {min} to {max} allowed")
            }
            C::InodeType { place, found } => {
                write!(f, "{place}: type {found}, which its version does not have")
            }
            C::IdIndex { place, table, found, count } => {
                write!(f, "{place}: owner index {found}, the image has {count} {table}")
            }
            C::SizeWord { place, found, max } => write!(
                f,
                "{place}: block size word {found:#x}, lengths from 1 to {max} and the bit 0x1000000 allowed"
            ),
            C::LinkLength { place } => write!(f, "{place}: link target of 0 bytes"),
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
            _ => error,
        }
    }
}

//! Faults of an image in words: place, found, allowed.

use packfs_core::Error;
use std::fmt;

/// A fault. `at` is the offset of the header concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corruption {
    Short { len: u64, min: u64 },
    Magic,
    Length { found: u64, min: u64, max: u64 },
    Sum { found: u32 },
    HeaderPlace { at: u64, end: u64 },
    HeaderSum { at: u64, found: u32 },
    NameEnd { at: u64, max: usize },
    Name { at: u64, fault: &'static str },
    Dot { at: u64 },
    DotDot { at: u64 },
    Next { at: u64, found: u64 },
    DataRange { at: u64, start: u64, len: u64, end: u64 },
    LinkTarget { at: u64, target: u64 },
    SymlinkLength { at: u64, found: u64, max: u64 },
    SymlinkNul { at: u64 },
    Kind { at: u64, wanted: &'static str },
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Corruption as C;
        match *self {
            C::Short { len, min } => write!(f, "{len} bytes, at least {min} needed"),
            C::Magic => f.write_str("superblock: begins with other bytes than -rom1fs-"),
            C::Length { found, min, max } => {
                write!(f, "superblock: image of {found} bytes, {min} to {max} allowed")
            }
            C::Dot { at } => {
                write!(f, "file header at {at:#x}: named \".\", but leads elsewhere than to its directory")
            }
            C::DotDot { at } => {
                write!(f, "file header at {at:#x}: named \"..\", but is no hard link to a directory")
            }
            C::Sum { found } => write!(f, "superblock: checksum: words add up to {found:#x}, 0 allowed"),
            C::HeaderPlace { at, end } => {
                write!(f, "file header at {at:#x}: multiples of 16 from 0x10 up to {end:#x} allowed")
            }
            C::HeaderSum { at, found } => {
                write!(f, "file header at {at:#x}: checksum: words add up to {found:#x}, 0 allowed")
            }
            C::NameEnd { at, max } => {
                write!(f, "header at {at:#x}: name without an end within {max} bytes")
            }
            C::Name { at, fault } => write!(f, "file header at {at:#x}: name: {fault}"),
            C::Next { at, found } => {
                write!(f, "file header at {at:#x}: the next is at {found:#x}, a later place or 0 allowed")
            }
            C::DataRange { at, start, len, end } => {
                write!(f, "file header at {at:#x}: data of {len} bytes at {start:#x}, up to {end:#x} allowed")
            }
            C::LinkTarget { at, target } => write!(
                f,
                "file header at {at:#x}: hard link to {target:#x}, which is one itself; a file or directory allowed"
            ),
            C::SymlinkLength { at, found, max } => {
                write!(f, "file header at {at:#x}: link target of {found} bytes, 1 to {max} allowed")
            }
            C::SymlinkNul { at } => write!(f, "file header at {at:#x}: link target with a NUL byte"),
            C::Kind { at, wanted } => write!(f, "file header at {at:#x}: not a {wanted}"),
        }
    }
}

impl From<Corruption> for Error {
    fn from(corruption: Corruption) -> Error {
        let error = Error::corrupt("romfs image", corruption);
        match corruption {
            Corruption::Short { .. } | Corruption::Length { .. } => {
                error.hint("the file looks truncated; copy or download it again")
            }
            _ => error,
        }
    }
}

//! Every fault of an image that this reader names, and how it is said: where, found, allowed.
//!
//! Owns the wording; whoever meets a fault only fills in figures. All of them become
//! [`Error::corrupt`].

use packfs_codec::Algorithm;
use packfs_codec::DecodeError;
use packfs_core::Error;
use std::fmt;

/// Where in the image a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The structure, such as `inode` or `directory entry`.
    pub(crate) what: &'static str,
    /// Its offset: in the image, or with `metabox` in the decoded metabox.
    pub(crate) at: u64,
    /// Whether it lies in the metabox.
    pub(crate) metabox: bool,
}

impl Place {
    /// A structure that lies in the image as it is.
    pub(crate) fn at(what: &'static str, at: u64) -> Self {
        Place { what, at, metabox: false }
    }

    /// Another structure at the same place.
    pub(crate) fn of(self, what: &'static str) -> Self {
        Place { what, ..self }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let within = if self.metabox { "metabox+" } else { "" };
        write!(f, "{} at {within}{:#x}", self.what, self.at)
    }
}

/// Which figures would be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// This or less.
    AtMost(u64),
    /// This or more.
    AtLeast(u64),
    /// From the first to the second.
    Between(u64, u64),
    /// Only this.
    Only(u64),
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed::AtMost(max) => write!(f, "at most {max}"),
            Allowed::AtLeast(min) => write!(f, "at least {min}"),
            Allowed::Between(min, max) => write!(f, "{min} to {max}"),
            Allowed::Only(only) => write!(f, "{only}"),
        }
    }
}

/// A fault. Fields named `found` hold what the image says, the others what would be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corruption {
    /// The file is shorter than a superblock.
    Short { len: u64 },
    /// The magic is another one.
    Magic { found: u32 },
    /// The superblock's checksum is not that of its bytes.
    Checksum { found: u32, wanted: u32 },
    /// A figure is out of its range.
    Figure { place: Place, figure: &'static str, found: u64, allowed: Allowed },
    /// Something that needs no figures to tell.
    Fault { place: Place, fault: &'static str },
    /// A range reaches outside of what there is.
    Outside { place: Place, what: &'static str, start: u64, len: u64, end: u64 },
    /// An algorithm is used that the superblock does not announce.
    Unannounced { place: Place, algorithm: &'static str },
    /// A block that holds metadata cannot be decoded.
    Decode { offset: u64, algorithm: Algorithm, reason: DecodeError },
    /// Such a block decodes to another length.
    DecodedLength { offset: u64, found: u64, expected: u64 },
    /// More inodes or bytes are reached than an image of this length can hold.
    Overlap { place: Place },
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Corruption as C;
        match *self {
            C::Short { len } => write!(f, "superblock: {len} bytes in the file, 1152 needed"),
            C::Magic { found } => {
                write!(f, "superblock at 0x400: magic {found:#010x}, 0xe0f5e1e2 allowed")
            }
            C::Checksum { found, wanted } => {
                write!(f, "superblock at 0x400: checksum {found:#010x}, its bytes have {wanted:#010x}")
            }
            C::Figure { place, figure, found, allowed } => {
                write!(f, "{place}: {figure} {found}, {allowed} allowed")
            }
            C::Fault { place, fault } => write!(f, "{place}: {fault}"),
            C::Outside { place, what, start, len, end } => {
                write!(f, "{place}: {len} bytes of {what} at {start:#x}, which ends at {end:#x}")
            }
            C::Unannounced { place, algorithm } => {
                write!(f, "{place}: {algorithm} data, but the superblock does not announce {algorithm}")
            }
            C::Decode { offset, algorithm, reason } => {
                write!(f, "block of metadata at {offset:#x}: {algorithm}: {reason}")
            }
            C::DecodedLength { offset, found, expected } => {
                write!(f, "block of metadata at {offset:#x}: decodes to {found} bytes, {expected} expected")
            }
            C::Overlap { place } => {
                write!(f, "{place}: structures overlap: more of them than an image of this length can hold")
            }
        }
    }
}

impl From<Corruption> for Error {
    fn from(corruption: Corruption) -> Self {
        if let Corruption::Decode { reason, .. } = corruption {
            return reason.of("erofs image", corruption);
        }
        let error = Error::corrupt("erofs image", corruption);
        match corruption {
            Corruption::Outside { .. } | Corruption::Short { .. } => error.hint("the file looks truncated"),
            Corruption::Checksum { .. } => {
                error.hint("the kernel refuses to mount it; --ignore-checksum reads it all the same")
            }
            _ => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_what_was_found_and_what_is_allowed() {
        let place = Place { what: "inode", at: 0x40, metabox: true };
        let figure = Corruption::Figure { place, figure: "layout", found: 7, allowed: Allowed::AtMost(4) };
        assert_eq!(
            Error::from(figure).to_string(),
            "corrupt erofs image: inode at metabox+0x40: layout 7, at most 4 allowed"
        );
    }
}

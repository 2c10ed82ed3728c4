//! Faults of an image and their messages: offset, value found, values allowed.

use packfs_codec::Algorithm;
use packfs_codec::DecodeError;
use packfs_core::Error;
use packfs_format::{TRUNCATED, faults};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The structure, such as `inode` or `directory entry`.
    pub(crate) what: &'static str,
    /// Offset in the image, or with `metabox` in the decoded metabox.
    pub(crate) at: u64,
    pub(crate) metabox: bool,
}

impl Place {
    pub(crate) fn at(what: &'static str, at: u64) -> Self {
        Place { what, at, metabox: false }
    }

    /// Another structure at the same offset.
    pub(crate) fn of(self, what: &'static str) -> Self {
        Place { what, ..self }
    }

    pub(crate) fn fault(self, fault: &'static str) -> Error {
        Corruption::Fault { place: self, fault }.into()
    }

    pub(crate) fn figure(self, figure: &'static str, found: impl Into<u64>, allowed: Allowed) -> Error {
        Corruption::Figure { place: self, figure, found: found.into(), allowed }.into()
    }

    /// Faults of a range that exceeds `what`, which ends at `end`.
    pub(crate) fn outside(self, what: &'static str, start: u64, len: u64, end: u64) -> Error {
        Corruption::Outside { place: self, what, start, len, end }.into()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let within = if self.metabox { "metabox+" } else { "" };
        write!(f, "{} at {within}{:#x}", self.what, self.at)
    }
}

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

faults! {
    pub(crate) enum Corruption in "erofs image" {}

    Short { len: u64 } =
        "superblock: {len} bytes in the file, 1152 needed" => hint TRUNCATED;
    Magic { found: u32 } = "superblock at 0x400: magic {found:#010x}, 0xe0f5e1e2 allowed";
    Checksum { found: u32, wanted: u32 } =
        "superblock at 0x400: checksum {found:#010x}, its bytes have {wanted:#010x}"
            => hint "the kernel refuses to mount it; --ignore-checksum reads it anyway";
    Figure { place: Place, figure: &'static str, found: u64, allowed: Allowed } =
        "{place}: {figure} {found}, {allowed} allowed";
    Fault { place: Place, fault: &'static str } = "{place}: {fault}";
    Outside { place: Place, what: &'static str, start: u64, len: u64, end: u64 } =
        "{place}: {len} bytes of {what} at {start:#x}, which ends at {end:#x}"
            => hint TRUNCATED;
    Unannounced { place: Place, algorithm: &'static str } =
        "{place}: {algorithm} data, but the superblock does not announce {algorithm}";
    Decode { offset: u64, algorithm: Algorithm, reason: DecodeError } =
        "block of metadata at {offset:#x}: {algorithm}: {reason}" => decode reason;
    DecodedLength { offset: u64, found: u64, expected: u64 } =
        "block of metadata at {offset:#x}: decodes to {found} bytes, {expected} expected";
    Overlap { place: Place } =
        "{place}: structures overlap: they exceed the length of the image";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_place_found_and_allowed() {
        let place = Place { what: "inode", at: 0x40, metabox: true };
        let figure = Corruption::Figure { place, figure: "layout", found: 7, allowed: Allowed::AtMost(4) };
        assert_eq!(
            Error::from(figure).to_string(),
            "corrupt erofs image: inode at metabox+0x40: layout 7, at most 4 allowed"
        );
    }
}

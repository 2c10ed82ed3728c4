//! Places of faults for messages, and references between structures.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Name of the structure, such as `inode` or `directory entry`.
    pub(crate) what: &'static str,
    /// Offset in the image of the structure, or of its metadata block.
    pub(crate) at: u64,
    /// Offset within the decoded metadata block, for a structure in one.
    pub(crate) within: Option<u32>,
}

impl Place {
    /// A structure outside of metadata blocks.
    pub(crate) fn at(what: &'static str, at: u64) -> Self {
        Place { what, at, within: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", self.what, self.at)?;
        match self.within {
            Some(within) => write!(f, "+{within:#x}"),
            None => Ok(()),
        }
    }
}

/// A reference to an inode or a listing: the metadata block's offset from the start of its table,
/// and an offset within the decoded block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct InodeRef {
    /// Start of the metadata block, relative to its table; at most 48 bits.
    pub(crate) block: u64,
    pub(crate) offset: u16,
}

impl InodeRef {
    /// Decodes a reference.
    pub(crate) fn from_raw(raw: u64) -> Self {
        InodeRef { block: raw >> 16, offset: (raw & 0xffff) as u16 }
    }

    /// Encodes it: `block << 16 | offset`.
    pub(crate) fn to_raw(self) -> u64 {
        (self.block << 16) | u64::from(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_survive_taking_apart_and_putting_together() {
        for raw in [0, 0x1f40, 0x0001_0000, 0xffff_ffff_ffff, u64::MAX] {
            assert_eq!(InodeRef::from_raw(raw).to_raw(), raw);
        }
        assert_eq!(InodeRef { block: 0x1234, offset: 0x56 }.to_raw(), 0x1234_0056);
    }
}

//! Mappings: extents of files, as they are stored.

use crate::disk::be64;
use std::ops::Range;

/// Blocks of a file and the blocks that hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// First block of the file.
    pub(crate) offset: u64,
    /// First block of the filesystem, or of the realtime section.
    pub(crate) start: u64,
    pub(crate) count: u64,
    /// Reserved, but never written: zeros.
    pub(crate) is_unwritten: bool,
}

impl Mapping {
    /// Returns the part of it within a range of blocks of the file.
    pub(crate) fn within(&self, range: &Range<u64>) -> Option<Mapping> {
        let (offset, end) = (self.offset.max(range.start), self.end().min(range.end));
        let count = end.checked_sub(offset).filter(|count| *count > 0)?;
        let start = self.start.saturating_add(offset.saturating_sub(self.offset));
        Some(Mapping { offset, start, count, ..*self })
    }

    pub(crate) fn parse(bytes: &[u8]) -> Mapping {
        let (high, low) = (be64(bytes, 0), be64(bytes, 8));
        Mapping {
            offset: (high & (u64::MAX >> 1)) >> 9,
            start: (high & 0x1ff) << 43 | low >> 21,
            count: low & 0x1f_ffff,
            is_unwritten: high >> 63 == 1,
        }
    }

    /// Returns the block of the file behind it.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_is_128_bits() {
        let bits = 1_u128 << 127 | 5_u128 << 73 | 0xabcde_u128 << 21 | 77;
        let mapping = Mapping { offset: 5, start: 0xabcde, count: 77, is_unwritten: true };
        assert_eq!(Mapping::parse(&bits.to_be_bytes()), mapping);
    }
}

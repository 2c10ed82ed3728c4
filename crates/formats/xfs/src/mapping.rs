//! Mappings: stored extents of files.

use crate::disk::BmbtRec;
use packfs_format::units::*;
use std::ops::Range;

/// Blocks of a file, and the blocks where they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) offset: u64,
    /// First block in the filesystem, or in the realtime section.
    pub(crate) start: u64,
    pub(crate) count: u64,
    /// Allocated but not written: zeros.
    pub(crate) is_unwritten: bool,
}

impl Mapping {
    /// Returns the intersection with a range of blocks of the file.
    pub(crate) fn within(&self, range: &Range<u64>) -> Option<Mapping> {
        let (offset, end) = (self.offset.max(range.start), self.end().min(range.end));
        let count = end.checked_sub(offset).filter(|count| *count > 0)?;
        let start = self.start.plus(offset.minus(self.offset));
        Some(Mapping { offset, start, count, ..*self })
    }

    pub(crate) fn parse(raw: BmbtRec) -> Mapping {
        let (high, low) = (raw.l0.get(), raw.l1.get());
        Mapping {
            offset: (high & (u64::MAX >> 1)) >> 9,
            start: (high & 0x1ff) << 43 | low >> 21,
            count: low & 0x1f_ffff,
            is_unwritten: high >> 63 == 1,
        }
    }

    pub(crate) fn end(&self) -> u64 {
        end_of(self.offset, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_is_128_bits() {
        let bits = 1_u128 << 127 | 5_u128 << 73 | 0xabcde_u128 << 21 | 77;
        let mapping = Mapping { offset: 5, start: 0xabcde, count: 77, is_unwritten: true };
        assert_eq!(Mapping::parse(zerocopy::transmute!(bits.to_be_bytes())), mapping);
    }
}

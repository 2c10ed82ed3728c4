//! Byte orders, and the order of bits in them.

use packfs_format::units::*;
use std::ops::Range;

/// The byte order of an image: that of the writing machine, or of an option. Since 4.0 always
/// little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endian {
    Little,
    Big,
}

impl Endian {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Endian::Little => "little",
            Endian::Big => "big",
        }
    }

    #[inline]
    pub(crate) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Endian::Little => u16::from_le_bytes(bytes),
            Endian::Big => u16::from_be_bytes(bytes),
        }
    }

    #[inline]
    pub(crate) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Endian::Little => u32::from_le_bytes(bytes),
            Endian::Big => u32::from_be_bytes(bytes),
        }
    }

    #[inline]
    pub(crate) fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Endian::Little => u64::from_le_bytes(bytes),
            Endian::Big => u64::from_be_bytes(bytes),
        }
    }

    #[inline]
    pub(crate) fn bytes_of_u64(self, word: u64) -> [u8; 8] {
        match self {
            Endian::Little => word.to_le_bytes(),
            Endian::Big => word.to_be_bytes(),
        }
    }

    /// Returns `width` bits, 1 to 64, at bit `at` of a record. Bits are counted as compilers of the
    /// order lay out bit fields: little-endian ones fill a word from its low bits, big-endian ones
    /// from the high bits of the first byte.
    pub(crate) fn get(self, record: &[u8], at: u32, width: u32) -> u64 {
        let (bytes, shift) = self.bytes_of_bits(at, width);
        let bytes = record.within(bytes);
        let join = |value: u128, byte: &u8| value << 8 | u128::from(*byte);
        let value = match self {
            Endian::Little => bytes.iter().rev().fold(0, join),
            Endian::Big => bytes.iter().fold(0, join),
        };
        u64::try_from(value.unbounded_shr(shift) & low_bits(width)).unwrap_or(u64::MAX)
    }

    /// Sets `width` bits at bit `at` of a record; they must be zero.
    pub(crate) fn put(self, record: &mut [u8], at: u32, width: u32, value: u64) {
        let (bytes, shift) = self.bytes_of_bits(at, width);
        let bytes = record.within_mut(bytes).iter_mut();
        let placed = (u128::from(value) & low_bits(width)).unbounded_shl(shift).to_le_bytes();
        match self {
            Endian::Little => bytes.zip(placed).for_each(|(byte, bits)| *byte |= bits),
            Endian::Big => bytes.rev().zip(placed).for_each(|(byte, bits)| *byte |= bits),
        }
    }

    /// Returns the bytes that contain `width` bits at bit `at`, and the number of lower bits in the
    /// word of these bytes.
    fn bytes_of_bits(self, at: u32, width: u32) -> (Range<usize>, u32) {
        let end = at.plus(width);
        let below = match self {
            Endian::Little => at % 8,
            Endian::Big => end.next_multiple_of(8).minus(end),
        };
        ((at / 8) as usize..end.div_ceil(8) as usize, below)
    }
}

fn low_bits(width: u32) -> u128 {
    !u128::MAX.unbounded_shl(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_where_they_were_put_and_nowhere_else() {
        for endian in [Endian::Little, Endian::Big] {
            for (at, width) in [(0, 1), (3, 13), (7, 64), (16, 27), (5, 3)] {
                let mut record = [0; 9];
                endian.put(&mut record, at, width, u64::MAX);
                assert_eq!(
                    endian.get(&record, at, width),
                    u64::MAX >> (64 - width),
                    "{endian:?} {at} {width}"
                );
                let ones: u32 = record.iter().map(|byte| byte.count_ones()).sum();
                assert_eq!(ones, width, "{endian:?} {at} {width}");
            }
        }
    }

    #[test]
    fn whole_words_are_the_words_of_their_byte_order() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(Endian::Little.u16([1, 2]), 0x201);
        assert_eq!(Endian::Big.u16([1, 2]), 0x102);
        for endian in [Endian::Little, Endian::Big] {
            assert_eq!(endian.get(&bytes, 0, 64), endian.u64(bytes));
            assert_eq!(endian.bytes_of_u64(endian.u64(bytes)), bytes);
            assert_eq!(endian.get(&bytes, 32, 32), u64::from(endian.u32([5, 6, 7, 8])));
            let mut put = [0; 2];
            endian.put(&mut put, 0, 16, u64::from(endian.u16([5, 6])));
            assert_eq!(put, [5, 6]);
        }
    }
}

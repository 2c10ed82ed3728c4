//! Bit fields, in the order of their declaration in a record, for both byte orders.
//!
//! Writers of Squashfs before 4.0 dumped C structs with bit fields as laid out by their own
//! machine: little-endian compilers fill a word from its low bits, big-endian ones from the high
//! bits of the first byte. Counted from a record's start, a field has the same position in both;
//! only the numbering of bits differs. So one reader with position and width serves both.

use crate::{Cursor, Endian};
use packfs_core::Result;
use packfs_format::units::*;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<const N: usize> {
    bytes: [u8; N],
    endian: Endian,
    at: u32,
}

impl<const N: usize> Fields<N> {
    pub(crate) fn new(bytes: [u8; N], endian: Endian) -> Self {
        Fields { bytes, endian, at: 0 }
    }

    pub(crate) fn take(&mut self, width: u32) -> u64 {
        let value = self.endian.get(&self.bytes, self.at, width);
        self.at = self.at.plus(width);
        value
    }

    /// `width` is at most 32.
    pub(crate) fn word(&mut self, width: u32) -> u32 {
        (self.take(width) & 0xffff_ffff) as u32
    }

    /// `width` is at most 16.
    pub(crate) fn half(&mut self, width: u32) -> u16 {
        (self.take(width) & 0xffff) as u16
    }
}

pub(crate) trait ReadFields {
    /// Returns the record of `N` bytes at the cursor.
    fn fields<const N: usize>(&mut self) -> Result<Fields<N>>;
}

impl ReadFields for Cursor<'_> {
    fn fields<const N: usize>(&mut self) -> Result<Fields<N>> {
        Ok(Fields::new(self.read()?, self.endian()))
    }
}

#[derive(Debug)]
pub(crate) struct Record<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    endian: Endian,
    at: u32,
}

impl<'a> Record<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, endian: Endian) -> Self {
        let start = out.len();
        Record { out, start, endian, at: 0 }
    }

    pub(crate) fn put(&mut self, width: u32, value: impl Into<u64>) -> &mut Self {
        let end = self.at.plus(width);
        self.out.resize(self.start.plus(end.div_ceil(8) as usize), 0);
        self.endian.put(self.out.within_mut(self.start..), self.at, width, value.into());
        self.at = end;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_endian_type_is_the_low_nibble_and_a_big_endian_one_the_high() {
        let mut little = Fields::new([0x42, 0x1a, 0xff, 0x00], Endian::Little);
        assert_eq!((little.take(4), little.take(12), little.take(8), little.take(8)), (2, 0x1a4, 255, 0));
        let mut big = Fields::new([0x21, 0xa4, 0x00, 0xff], Endian::Big);
        assert_eq!((big.take(4), big.take(12), big.take(8), big.take(8)), (2, 0x1a4, 0, 255));
    }

    #[test]
    fn fields_that_straddle_bytes_come_back_in_both_orders() {
        for endian in [Endian::Little, Endian::Big] {
            for widths in [[19, 13, 32, 24], [27, 29, 8, 16], [4, 12, 8, 64], [1, 63, 64, 8]] {
                for seed in [1u64, 0x0123_4567_89ab_cdef, u64::MAX, 0] {
                    let value = |width: u32| seed.rotate_left(width) & (u64::MAX >> (64 - width));
                    let mut bytes = vec![0xaa];
                    let mut record = Record::new(&mut bytes, endian);
                    for width in widths {
                        record.put(width, value(width));
                    }
                    let mut room = [0; 32];
                    room[..bytes.len() - 1].copy_from_slice(&bytes[1..]);
                    let mut fields = Fields::new(room, endian);
                    for width in widths {
                        assert_eq!(fields.take(width), value(width), "{endian:?} {widths:?} {seed:#x}");
                    }
                    assert_eq!(bytes[0], 0xaa);
                }
            }
        }
    }

    #[test]
    fn whole_words_are_the_words_of_their_byte_order() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        for endian in [Endian::Little, Endian::Big] {
            let mut fields = Fields::new(bytes, endian);
            assert_eq!(fields.word(32), endian.u32([1, 2, 3, 4]));
            assert_eq!(fields.half(16), endian.u16([5, 6]));
            assert_eq!(Fields::new(bytes, endian).take(64), endian.u64(bytes));
        }
    }
}

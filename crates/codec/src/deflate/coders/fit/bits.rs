//! Bit strings in the order of DEFLATE: the lowest bit of a byte first.

/// Reads bits; zeros follow after the end.
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
    held: u64,
    held_count: u32,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8], at_bit: usize) -> BitReader<'a> {
        let mut reader = BitReader { bytes, at: at_bit / 8, held: 0, held_count: 0 };
        reader.fill();
        reader.skip((at_bit % 8) as u32);
        reader
    }

    #[inline]
    pub(super) fn fill(&mut self) {
        if let Some(next) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            self.held |= u64::from_le_bytes(*next) << self.held_count;
            let taken = (63 - self.held_count) / 8;
            self.at += taken as usize;
            self.held_count += taken * 8;
            return;
        }
        while self.held_count <= 56 {
            let byte = self.bytes.get(self.at).copied().unwrap_or(0);
            self.held |= u64::from(byte) << self.held_count;
            self.at += 1;
            self.held_count += 8;
        }
    }

    /// Returns the next bits; `fill` must have made them available.
    #[inline]
    pub(super) fn peek(&self, count: u32) -> u32 {
        (self.held & ((1 << count) - 1)) as u32
    }

    #[inline]
    pub(super) fn skip(&mut self, count: u32) {
        self.held >>= count;
        self.held_count = self.held_count.saturating_sub(count);
    }

    #[inline]
    pub(super) fn take(&mut self, count: u32) -> u32 {
        let bits = self.peek(count);
        self.skip(count);
        bits
    }

    pub(super) fn position(&self) -> usize {
        self.at * 8 - self.held_count as usize
    }
}

/// Appends bits. Never writes past the end: bits without space are dropped, as callers have counted
/// before.
pub(super) struct BitWriter<'a> {
    bytes: &'a mut [u8],
    at: usize,
    held: u64,
    held_count: u32,
}

impl<'a> BitWriter<'a> {
    /// Continues at a bit of a byte whose lower bits are written.
    pub(super) fn new(bytes: &'a mut [u8], at_bit: usize) -> BitWriter<'a> {
        let (at, held_count) = (at_bit / 8, (at_bit % 8) as u32);
        let begun = bytes.get(at).copied().unwrap_or(0);
        BitWriter { bytes, at, held: u64::from(begun) & ((1 << held_count) - 1), held_count }
    }

    #[inline]
    pub(super) fn put(&mut self, bits: u32, count: u32) {
        self.held |= u64::from(bits) << self.held_count;
        self.held_count += count;
        if self.held_count >= 32 {
            self.spill();
        }
    }

    #[inline]
    fn spill(&mut self) {
        if let Some(next) = self.bytes.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut::<4>()) {
            *next = (self.held as u32).to_le_bytes();
            self.at += 4;
            self.held >>= 32;
            self.held_count -= 32;
            return;
        }
        while self.held_count >= 8 {
            self.spill_byte();
        }
    }

    fn spill_byte(&mut self) {
        if let Some(byte) = self.bytes.get_mut(self.at) {
            *byte = self.held as u8;
            self.at += 1;
        }
        self.held >>= 8;
        self.held_count = self.held_count.saturating_sub(8);
    }

    /// Pads the last byte with zeros and returns the total length.
    pub(super) fn finish(mut self) -> usize {
        while self.held_count > 0 {
            self.spill_byte();
        }
        self.at
    }
}

/// Marks the block between these bits as the last one, and clears the rest of its last byte.
pub(super) fn end_after(stream: &mut [u8], start_bit: usize, end_bit: usize) {
    stream[start_bit / 8] |= 1 << (start_bit % 8);
    if !end_bit.is_multiple_of(8) {
        stream[end_bit / 8] &= (1 << (end_bit % 8)) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_bits_that_were_written() {
        let mut bytes = [0xFF; 40];
        let mut writer = BitWriter::new(&mut bytes, 3);
        let fields: Vec<(u32, u32)> =
            (0..40u32).map(|i| (i.wrapping_mul(0x1234_5679) & ((1 << (i % 16)) - 1), i % 16)).collect();
        fields.iter().for_each(|&(bits, count)| writer.put(bits, count));
        let len = writer.finish();
        let total: u32 = 3 + fields.iter().map(|field| field.1).sum::<u32>();
        assert_eq!(len, total.div_ceil(8) as usize);
        assert_eq!(bytes[0] & 7, 7, "what was there stays");
        let mut reader = BitReader::new(&bytes, 3);
        for &(bits, count) in &fields {
            reader.fill();
            assert_eq!(reader.take(count), bits);
        }
        assert_eq!(reader.position(), total as usize);
    }
}

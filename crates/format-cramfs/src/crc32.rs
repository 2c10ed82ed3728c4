//! CRC-32 as zlib has it (IEEE 802.3), eight bytes at a time: images are summed up as a whole.

const POLYNOMIAL: u32 = 0xedb8_8320;

/// Row n: what a byte does to the sum once n more bytes have followed.
const TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut index = 0;
    while index < 256 {
        let mut word = index as u32;
        let mut bit = 0;
        while bit < 8 {
            word = if word & 1 == 0 { word >> 1 } else { word >> 1 ^ POLYNOMIAL };
            bit += 1;
        }
        tables[0][index] = word;
        index += 1;
    }
    let mut row = 1;
    while row < 8 {
        let mut index = 0;
        while index < 256 {
            let word = tables[row - 1][index];
            tables[row][index] = word >> 8 ^ tables[0][(word & 0xff) as usize];
            index += 1;
        }
        row += 1;
    }
    tables
};

/// A sum under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crc32(u32);

impl Crc32 {
    pub(crate) fn new() -> Self {
        Crc32(u32::MAX)
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut low = [0; 4];
            low.copy_from_slice(&chunk[..4]);
            let low = (u32::from_le_bytes(low) ^ self.0).to_le_bytes();
            let rows = TABLES.iter().rev().zip(low.iter().chain(&chunk[4..]));
            self.0 = rows.fold(0, |sum, (row, byte)| sum ^ row[usize::from(*byte)]);
        }
        for &byte in chunks.remainder() {
            self.0 = self.0 >> 8 ^ TABLES[0][usize::from(self.0 as u8 ^ byte)];
        }
    }

    pub(crate) fn value(self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crc32(bytes: &[u8]) -> u32 {
        let mut sum = Crc32::new();
        sum.update(bytes);
        sum.value()
    }

    #[test]
    fn agrees_with_the_check_value_of_the_catalogue() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn it_does_not_matter_how_bytes_are_handed_over() {
        let bytes: Vec<u8> = (0..100_u32).map(|index| (index * 37 % 251) as u8).collect();
        for cut in 0..bytes.len() {
            let mut sum = Crc32::new();
            sum.update(&bytes[..cut]);
            sum.update(&bytes[cut..]);
            assert_eq!(sum.value(), crc32(&bytes), "{cut}");
        }
    }
}

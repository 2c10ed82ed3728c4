//! CRC-32 (IEEE 802.3), as GPT has it in its headers.

const POLYNOMIAL: u32 = 0xedb8_8320;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut word = index as u32;
        let mut bit = 0;
        while bit < 8 {
            word = if word & 1 == 0 { word >> 1 } else { word >> 1 ^ POLYNOMIAL };
            bit += 1;
        }
        table[index] = word;
        index += 1;
    }
    table
};

/// The checksum of `bytes`.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |word, &byte| word >> 8 ^ TABLE[usize::from(word as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_check_value_of_the_catalogue() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}

//! CRC-32C (Castagnoli), as EROFS puts it into its superblock: seed of all ones, no final
//! inversion.

const POLYNOMIAL: u32 = 0x82f6_3b78;

#[allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "an index below 256")]
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

/// The checksum of `bytes`, started from all ones.
#[allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "an index of eight bits")]
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |word, &byte| word >> 8 ^ TABLE[usize::from(word as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_check_value_of_the_catalogue() {
        assert_eq!(crc32c(b"123456789"), !0xe306_9283);
    }
}

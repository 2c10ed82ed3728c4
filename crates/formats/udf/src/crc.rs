//! The CRC of descriptors: polynomial 0x1021, from 0, not reflected (ECMA-167 7.2.6).

const TABLE: [u16; 256] = table();

#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "counts to 256")]
#[allow(clippy::cast_possible_truncation, reason = "counts to 256")]
const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let (mut crc, mut bit) = ((index as u16) << 8, 0);
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

pub(crate) fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        let [high, low] = crc.to_be_bytes();
        let entry = TABLE.get(usize::from(high ^ byte)).copied().unwrap_or(0);
        u16::from_be_bytes([low, 0]) ^ entry
    })
}

#[cfg(test)]
mod tests {
    use super::crc;

    #[test]
    fn is_that_of_the_standard() {
        // The example of ECMA-167 7.2.6, and the check value of CRC-16/XMODEM.
        assert_eq!(crc(&[0x70, 0x6a, 0x77]), 0x3299);
        assert_eq!(crc(b"123456789"), 0x31c3);
    }
}

//! CRC-32C (Castagnoli), as filesystems use it.

/// Returns the checksum of `bytes` started from `seed`, without inversion before or after, as
/// Linux's `crc32c()`; `!crc32c(!0, bytes)` is the checksum of the catalogue (RFC 3720).
pub fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    !::crc32c::crc32c_append(!seed, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_check_value_of_the_catalogue() {
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(crc32c(7, b"1234"), b"56789"), crc32c(7, b"123456789"));
    }
}

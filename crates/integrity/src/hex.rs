//! Bytes as hexadecimal digits, as other tools print digests.

use std::fmt::Write as _;

/// Returns lower-case digits.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Parses digits of either case; `None` for anything else.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_prints_and_nothing_else() {
        assert_eq!(to_hex(&[0, 0xab, 0xff]), "00abff");
        assert_eq!(from_hex("00ABff"), Some(vec![0, 0xab, 0xff]));
        assert_eq!(from_hex(""), Some(Vec::new()));
        for bad in ["0", "0g", "+1", "ä", " 00"] {
            assert_eq!(from_hex(bad), None, "{bad}");
        }
    }
}

//! Bytes as hexadecimal digits, as other tools print digests and UUIDs.

use std::fmt::Write as _;

/// Returns lower-case digits.
pub fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Parses digits of either case; `None` for anything else.
pub fn from_hex(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    text.as_ref().chunks(2).map(hex_byte).collect()
}

/// Parses two digits of either case; `None` for anything else, such as a sign and a digit.
pub fn hex_byte(digits: &[u8]) -> Option<u8> {
    let [high, low] = *digits else { return None };
    let digit = |byte| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

/// Returns a UUID as its five groups of digits.
pub fn uuid_text(uuid: &[u8; 16]) -> String {
    let digits = to_hex(uuid);
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_prints_and_nothing_else() {
        assert_eq!(to_hex(&[0, 0xab, 0xff]), "00abff");
        assert_eq!(from_hex("00ABff"), Some(vec![0, 0xab, 0xff]));
        assert_eq!(from_hex(""), Some(Vec::new()));
        for bad in ["0", "0g", "+1", "ä", " 00", "000"] {
            assert_eq!(from_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn uuids_have_five_groups() {
        let uuid = std::array::from_fn(|index| index as u8);
        assert_eq!(uuid_text(&uuid), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}

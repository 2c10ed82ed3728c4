//! Values of options: texts, numbers, sizes.

use packfs::{Error, Result};
use std::ffi::OsStr;
use std::str::FromStr;

/// Errors: `Usage` if the value is not UTF-8.
pub fn as_text<'a>(name: &str, value: &'a OsStr) -> Result<&'a str> {
    value.to_str().ok_or_else(|| Error::usage(format!("{name}: {value:?} is not UTF-8")))
}

/// Decimal, octal or hexadecimal, with blanks before it, as strtol.
pub fn number(name: &str, text: &str) -> Result<i64> {
    wide(text).and_then(|value| value.try_into().ok()).ok_or_else(|| not_a_number(name, text))
}

/// Seconds since 1970. Numbers from 2^63 on are times before it, as strtoull.
pub fn seconds(name: &str, text: &str) -> Result<i64> {
    let seconds =
        |value: i128| i64::try_from(value).ok().or_else(|| Some(u64::try_from(value).ok()?.cast_signed()));
    wide(text).and_then(seconds).ok_or_else(|| not_a_number(name, text))
}

fn not_a_number(name: &str, text: &str) -> Error {
    Error::usage(format!("{name}: {text:?} is not a number"))
}

fn wide(text: &str) -> Option<i128> {
    let text = text.trim_ascii_start();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let parsed = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8),
        None => digits.parse(),
    };
    parsed.ok().map(|value| sign * i128::from(value))
}

/// A number with the suffixes of mkfs.erofs: `64k`, `1M`, `1g`.
pub fn sized(name: &str, text: &str) -> Result<i64> {
    let (digits, shift) = match text.as_bytes().last().map(u8::to_ascii_lowercase) {
        Some(b'k') => (&text[..text.len() - 1], 10),
        Some(b'm') => (&text[..text.len() - 1], 20),
        Some(b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let too_large = || Error::usage(format!("{name}: {text} is too large"));
    number(name, digits)?.checked_mul(1 << shift).ok_or_else(too_large)
}

/// A number of bytes, with the suffixes that all these tools support.
pub fn size(name: &str, text: &str) -> Result<u64> {
    let wrong = || Error::usage(format!("{name}: {text:?} is not a size, such as 4096, 128K or 1M"));
    let text = text.trim_ascii_start();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let (unit, rest) = suffix.split_at_checked(1).unwrap_or_default();
    let shift = match unit {
        "" => 0,
        _ if !["", "b", "B", "bytes", "iB"].contains(&rest) => return Err(wrong()),
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

/// A size as packfs reads it.
pub fn bytes(name: &str, text: &str) -> Result<String> {
    Ok(size(name, text)?.to_string())
}

/// A decimal number in the range of its type.
pub fn decimal<T: FromStr>(name: &str, text: &str) -> Result<T> {
    text.trim().parse().map_err(|_| Error::usage(format!("{name}: {text:?} is not a number in range")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_c() {
        let of = |text| sized("-C", text).ok();
        assert_eq!(
            ["10", "010", "0x10", "-1", "64k", "0x1K", "1G"].map(of).map(Option::unwrap),
            [10, 8, 16, -1, 65536, 1024, 1 << 30]
        );
        assert_eq!([" 5", "+5"].map(of), [Some(5); 2]);
        assert_eq!(["", "k", "08", "1x", "5 ", "9999999999999G"].map(of), [None; 6]);
        assert_eq!(number("-C", "-9223372036854775808").ok(), Some(i64::MIN));
        assert_eq!(number("-C", "9223372036854775808").ok(), None);
        let time = |text| seconds("-T", text).ok();
        assert_eq!(
            ["-2", "9223372036854775808", "18446744073709551614", "18446744073709551616"].map(time),
            [Some(-2), Some(i64::MIN), Some(-2), None]
        );
    }

    #[test]
    fn sizes_have_the_suffixes_of_the_tools() {
        let of = |text| size("-b", text).ok();
        assert_eq!(
            ["4096", "128K", "1Mbytes", " 32kb", "1X", "1bytes", "1Kbyte", "é", ""].map(of),
            [Some(4096), Some(131_072), Some(1 << 20), Some(32_768), None, None, None, None, None]
        );
    }
}

//! Decimal numbers in tar records and manifests: digits alone, and times with sign and fraction.

use packfs_core::Timestamp;

const NANOS: i128 = 1_000_000_000;

/// Parses digits without sign or spaces; `None` for anything else, or above 64 bits.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |sum, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// Parses seconds since 1970 with an optional sign and fraction; `-1.5` is half a second before
/// `-1`. Digits beyond nanoseconds are rounded down. `None` for anything else, or beyond 64 bits of
/// seconds.
pub(crate) fn time(text: &[u8]) -> Option<Timestamp> {
    let (negative, text) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let (whole, fraction) = match text.iter().position(|&b| b == b'.') {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &[][..]),
    };
    let mut total = i128::from(number(whole)?) * NANOS;
    let mut unit = NANOS;
    let mut finer = false;
    for &byte in fraction {
        if !byte.is_ascii_digit() {
            return None;
        }
        unit /= 10;
        total += i128::from(byte - b'0') * unit;
        finer |= unit == 0 && byte != b'0';
    }
    if negative {
        total = -total - i128::from(finer);
    }
    let seconds = i64::try_from(total.div_euclid(NANOS)).ok()?;
    Some(Timestamp { seconds, nanos: total.rem_euclid(NANOS) as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_their_fraction_away_from_zero() {
        for (text, seconds, nanos) in [
            ("0", 0, 0),
            ("1.5", 1, 500_000_000),
            ("-1.5", -2, 500_000_000),
            ("-157766399.5", -157_766_400, 500_000_000),
            ("-0.000000001", -1, 999_999_999),
            ("7.0000000009", 7, 0),
            ("-7.0000000009", -8, 999_999_999),
            ("12.", 12, 0),
            ("+3", 3, 0),
            ("9223372036854775807.999999999", i64::MAX, 999_999_999),
            ("-9223372036854775808", i64::MIN, 0),
        ] {
            assert_eq!(time(text.as_bytes()), Some(Timestamp { seconds, nanos }), "{text}");
        }
    }

    #[test]
    fn refuses_invalid_numbers() {
        for wrong in ["", "-", "x", ".5", "1.x", "1e3", " 1", "--1", "9223372036854775808", "1.5.5"] {
            assert_eq!(time(wrong.as_bytes()), None, "{wrong}");
        }
        for wrong in ["", "-1", "+1", " 1", "0x10", "18446744073709551616"] {
            assert_eq!(number(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
    }
}

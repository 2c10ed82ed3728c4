//! Formatting and parsing of sizes, shares, and times.

use jiff::tz::TimeZone;
use packfs::Timestamp;

/// Formats `512 B`, `1.5 KiB`, `3.0 GiB`.
pub fn size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    let mut unit = "";
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        (value, unit) = (value / 1024.0, next);
        if value < 1023.95 {
            break;
        }
    }
    format!("{value:.1} {unit}")
}

/// Formats `3.0 GiB (3,221,225,472 bytes)`.
pub fn long_size(bytes: u64) -> String {
    match bytes {
        0..1024 => size(bytes),
        _ => format!("{} ({} bytes)", size(bytes), count(bytes)),
    }
}

/// Formats the share of `part` in `whole`, as `33.3 %`, at most `over 999 %`.
pub fn percent(part: u64, whole: u64) -> String {
    if part == 0 {
        return "0.0 %".into();
    }
    let share = part as f64 * 100.0 / whole as f64;
    if share < 999.95 { format!("{share:.1} %") } else { "over 999 %".into() }
}

/// Formats a number with commas between thousands.
pub fn count(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// Formats `one file`, `2 files`.
pub fn counted(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", count(number)),
    }
}

const VALUE_LEN_MAX: usize = 256;

/// Splits a value that would flood a terminal: the bytes to show, and a note about the rest.
pub fn beginning(value: &[u8]) -> (&[u8], String) {
    let Some(head) = value.get(..VALUE_LEN_MAX).filter(|head| head.len() < value.len()) else {
        return (value, String::new());
    };
    // Not within a character.
    let head = match std::str::from_utf8(head) {
        Err(error) if error.error_len().is_none() => &head[..error.valid_up_to()],
        _ => head,
    };
    let rest = counted((value.len() - head.len()) as u64, "more byte");
    (head, format!("... ({rest}; --json has all)"))
}

pub use packfs::options::parse_block_len;
pub use packfs::{parse_size, parse_time};

/// Formats a time with its zone, down to its precision: `2026-11-20 13:05:00.5 +01:00`; decimal
/// seconds if it is out of range.
pub fn long_time(time: Timestamp) -> String {
    match zoned(time) {
        Some(zoned) if time.nanos == 0 => zoned.strftime("%Y-%m-%d %H:%M:%S %:z").to_string(),
        Some(zoned) => zoned.strftime("%Y-%m-%d %H:%M:%S%.f %:z").to_string(),
        None => format!("@{time}"),
    }
}

/// Returns a time in this machine's zone, if it is in range.
pub fn zoned(time: Timestamp) -> Option<jiff::Zoned> {
    let nanos = i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
    let time = jiff::Timestamp::from_nanosecond(nanos).ok()?;
    Some(time.to_zoned(TimeZone::system()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_shortened() {
        assert_eq!(beginning(&[7; 256]), (&[7; 256][..], String::new()));
        assert_eq!(
            beginning(&[7; 65_536]),
            (&[7; 256][..], "... (65,280 more bytes; --json has all)".into())
        );
        let text = "ä".repeat(200);
        assert_eq!(beginning(text.as_bytes()).0.len(), 256);
        let odd = format!("a{text}");
        assert_eq!(beginning(odd.as_bytes()).0.len(), 255);
    }

    #[test]
    fn prints_sizes_with_one_decimal() {
        for (bytes, printed) in [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), ((1 << 20) - 1, "1.0 MiB")]
        {
            assert_eq!(size(bytes), printed);
        }
        assert_eq!(size(u64::MAX), "16.0 EiB");
    }

    #[test]
    fn shares_have_no_more_than_three_digits() {
        for (part, whole, printed) in [
            (1, 3, "33.3 %"),
            (0, 0, "0.0 %"),
            (0, 9, "0.0 %"),
            (5, 2, "250.0 %"),
            (6144, 1, "over 999 %"),
            (6144, 0, "over 999 %"),
            (u64::MAX, 1, "over 999 %"),
        ] {
            assert_eq!(percent(part, whole), printed);
        }
    }

    #[test]
    fn reads_sizes_with_binary_units() {
        for (typed, bytes) in
            [("4096", 4096), ("128K", 131_072), ("1M", 1 << 20), ("1MiB", 1 << 20), ("0x1000", 4096)]
        {
            assert_eq!(parse_size(typed), Ok(bytes));
        }
        for bad in ["", "K", "12Q", "-1", "1.5M", "99999999999999999999", "99999999T"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn prints_times_that_no_calendar_holds() {
        assert_eq!(long_time(Timestamp::from_seconds(i64::MAX)), format!("@{}", i64::MAX));
    }
}

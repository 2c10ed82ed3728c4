//! Figures as people type and read them: sizes, shares, times.

use jiff::tz::TimeZone;
use packfs::Timestamp;

/// `512 B`, `1.5 KiB`, `3.0 GiB`.
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

/// `3.0 GiB (3,221,225,472 bytes)`.
pub fn long_size(bytes: u64) -> String {
    match bytes {
        0..1024 => size(bytes),
        _ => format!("{} ({} bytes)", size(bytes), count(bytes)),
    }
}

/// Share of `part` in `whole`, as `33.3 %`; `over 999 %` where more figures would say no more.
pub fn percent(part: u64, whole: u64) -> String {
    if part == 0 {
        return "0.0 %".into();
    }
    let share = part as f64 * 100.0 / whole as f64;
    if share < 999.95 { format!("{share:.1} %") } else { "over 999 %".into() }
}

/// A number with commas between thousands.
pub fn count(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// `one file`, `2 files`.
pub fn counted(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", count(number)),
    }
}

/// Bytes of a value that are shown.
const VALUE_LEN_MAX: usize = 256;

/// Splits a value that would flood a terminal: the bytes to show, and words for the rest.
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

/// Reads `4096`, `128K`, `1M`, `2G`, `1MiB` or `0x1000`. Units are powers of 1024.
///
/// Used as a value parser of the command line, which adds the name of the option to the message.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let refuse = || "not a size; use 4096, 128K, 1M or 0x1000".to_owned();
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).map_err(|_| refuse());
    }
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err(refuse()),
    };
    let number: u64 = digits.parse().map_err(|_| refuse())?;
    number.checked_mul(1 << shift).ok_or_else(refuse)
}

/// Reads sizes like [`parse_size`], up to the limit of a block.
pub fn parse_block_len(text: &str) -> Result<u32, String> {
    u32::try_from(parse_size(text)?).map_err(|_| "too large for a block size".to_owned())
}

/// Reads a time: `SECONDS` or `@SECONDS` since 1970, with a fraction if need be, or a date such as
/// `2026-11-20`, `2026-11-20T13:05:00Z`.
pub fn parse_time(text: &str) -> Result<Timestamp, String> {
    let refuse = || "not a time; use seconds since 1970, 2026-11-20 or 2026-11-20T13:05:00Z".to_owned();
    let digits = text.strip_prefix('@').unwrap_or(text);
    if let Some(time) = parse_seconds(digits) {
        return Ok(time);
    }
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return from_jiff(time).ok_or_else(refuse);
    }
    // Without a zone a date means UTC, so that a command means the same on every machine.
    let date: jiff::civil::DateTime = text.parse().map_err(|_| refuse())?;
    let time = date.to_zoned(TimeZone::UTC).map_err(|_| refuse())?.timestamp();
    from_jiff(time).ok_or_else(refuse)
}

fn from_jiff(time: jiff::Timestamp) -> Option<Timestamp> {
    let nanos = time.as_nanosecond();
    let seconds = i64::try_from(nanos.div_euclid(1_000_000_000)).ok()?;
    Some(Timestamp { seconds, nanos: u32::try_from(nanos.rem_euclid(1_000_000_000)).ok()? })
}

/// Decimal seconds, such as `-1.5`.
fn parse_seconds(text: &str) -> Option<Timestamp> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let nanos: u32 = format!("{fraction:0<9}").parse().ok()?;
    Some(match (negative, nanos) {
        (false, nanos) => Timestamp { seconds: whole, nanos },
        (true, 0) => Timestamp { seconds: -whole, nanos: 0 },
        (true, nanos) => Timestamp { seconds: -whole - 1, nanos: 1_000_000_000 - nanos },
    })
}

/// A time with its zone, down to what it holds: `2026-11-20 13:05:00.5 +01:00`; decimal seconds if
/// it is too far away.
pub fn long_time(time: Timestamp) -> String {
    match zoned(time) {
        Some(zoned) if time.nanos == 0 => zoned.strftime("%Y-%m-%d %H:%M:%S %:z").to_string(),
        Some(zoned) => zoned.strftime("%Y-%m-%d %H:%M:%S%.f %:z").to_string(),
        None => format!("@{time}"),
    }
}

/// A time in this machine's zone; `None` if no calendar holds it.
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
    fn reads_times_as_seconds_and_dates() {
        assert_eq!(parse_time("-1.5").unwrap(), Timestamp { seconds: -2, nanos: 500_000_000 });
        assert_eq!(parse_time("@86400").unwrap(), Timestamp::from_seconds(86400));
        assert_eq!(parse_time("1970-01-02").unwrap(), Timestamp::from_seconds(86400));
        assert_eq!(parse_time("1970-01-02T00:00:00Z").unwrap(), Timestamp::from_seconds(86400));
        assert_eq!(
            parse_time("1969-12-31T23:59:58.5Z").unwrap(),
            Timestamp { seconds: -2, nanos: 500_000_000 }
        );
        for bad in ["", "now", "1.", "1.0000000001", "2026-13-01"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn prints_times_that_no_calendar_holds() {
        assert_eq!(long_time(Timestamp::from_seconds(i64::MAX)), format!("@{}", i64::MAX));
    }
}

//! Times as typed, and the time that the environment sets for reproducible builds.

use jiff::tz::TimeZone;
use packfs_core::{Error, Result, Timestamp};
use packfs_source::Shape;
use std::str::FromStr;

/// Returns the seconds of `SOURCE_DATE_EPOCH`, which are a number of type `T`.
///
/// Source: <https://reproducible-builds.org/specs/source-date-epoch>.
///
/// Errors: `Usage` for what is no such number.
pub fn source_date_epoch<T: FromStr + Into<i64>>() -> Result<Option<i64>> {
    let Some(value) = std::env::var_os("SOURCE_DATE_EPOCH").filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let seconds = value.to_str().and_then(|text| text.parse::<T>().ok());
    seconds.map(|seconds| Some(seconds.into())).ok_or_else(|| {
        let value = packfs_core::escaped(value.as_encoded_bytes());
        Error::usage(format!("invalid SOURCE_DATE_EPOCH={value}: not seconds since 1970"))
    })
}

/// Limits times to that of the environment, unless options say what they are.
pub(crate) fn clamp(shape: &mut Shape, epoch: Option<i64>) {
    if shape.mtime.is_none() && shape.mtime_max.is_none() {
        shape.mtime_max = epoch.map(Timestamp::from_seconds);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
}

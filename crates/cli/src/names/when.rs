//! Times as the tools take and print them.

use jiff::tz::TimeZone;
use packfs::{Error, Result, ResultExt};
use std::process::Command;
use std::str::FromStr;

/// Returns the seconds of a number, or of a text that `date -d` understands.
///
/// Errors: `Usage`.
pub fn seconds(name: &str, text: &str) -> Result<i64> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(i64::from(seconds));
    }
    let run = Command::new("date").args(["-d", text, "+%s"]).output().or_io(|| "cannot run date")?;
    let printed: Option<u32> = String::from_utf8_lossy(&run.stdout).trim().parse().ok();
    printed.filter(|_| run.status.success()).map(i64::from).ok_or_else(|| {
        Error::usage(format!(
            "{name}: {text:?} is neither seconds since 1970, of 32 bits, nor such a time that date understands"
        ))
    })
}

/// Returns the value of `SOURCE_DATE_EPOCH`, whose type is that of the tool.
///
/// Errors: `Usage` for what is no number of the type.
pub fn source_date_epoch<T: FromStr + Into<i64>>() -> Result<Option<i64>> {
    let Some(value) = std::env::var_os("SOURCE_DATE_EPOCH").filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let seconds = value.to_str().and_then(|text| text.parse::<T>().ok());
    seconds.map(|seconds| Some(seconds.into())).ok_or_else(|| {
        Error::usage(format!("invalid SOURCE_DATE_EPOCH={}: not seconds since 1970", value.to_string_lossy()))
    })
}

/// Formats times in the zone of the environment, or in UTC.
pub struct Clock(TimeZone);

impl Clock {
    /// The zone of this machine and of `TZ`.
    pub fn local() -> Self {
        Clock(TimeZone::try_system().unwrap_or(TimeZone::UTC))
    }

    /// UTC.
    pub fn utc() -> Self {
        Clock(TimeZone::UTC)
    }

    fn format(&self, seconds: i64, format: &str) -> String {
        let time = jiff::Timestamp::from_second(seconds).unwrap_or_default();
        time.to_zoned(self.0.clone()).strftime(format).to_string()
    }

    /// `2026-11-23 23:49`, with seconds if `full`.
    pub fn listed(&self, seconds: i64, full: bool) -> String {
        self.format(seconds, if full { "%Y-%m-%d %H:%M:%S" } else { "%Y-%m-%d %H:%M" })
    }

    /// `Thu, 01 Jan 1970 00:00:00 +0000`, as in mails.
    pub fn mail(&self, seconds: i64) -> String {
        self.format(seconds, "%a, %d %b %Y %H:%M:%S %z")
    }

    /// `Mon Nov 23 23:49:06 2026`, as asctime.
    pub fn asctime(&self, seconds: i64) -> String {
        self.format(seconds, "%a %b %e %H:%M:%S %Y")
    }
}

//! Times on command lines and in output of the tools.

use jiff::tz::TimeZone;
use packfs::{Error, Result, ResultExt};
use std::process::Command;

/// Accepts a number, or a text that `date -d` understands.
pub fn seconds(name: &str, text: &str) -> Result<i64> {
    if let Ok(seconds) = text.trim_ascii_start().parse::<u32>() {
        return Ok(i64::from(seconds));
    }
    let run = Command::new("date").args(["-d", text, "+%s"]).output().or_io(|| "cannot run date")?;
    let printed: Option<u32> = String::from_utf8_lossy(&run.stdout).trim().parse().ok();
    // An empty date would be the last midnight.
    printed.filter(|_| run.status.success() && !text.is_empty()).map(i64::from).ok_or_else(|| {
        Error::usage(format!(
            "{name}: {text:?} is neither seconds since 1970, of 32 bits, nor such a time that date understands"
        ))
    })
}

pub struct Clock(TimeZone);

impl Clock {
    /// Uses the zone of this machine, or `TZ`.
    pub fn local() -> Self {
        // The C library completes a zone such as `EST5EDT` by the rules of the United States.
        let short = || TimeZone::posix(&(std::env::var("TZ").ok()? + ",M3.2.0,M11.1.0")).ok();
        Clock(TimeZone::try_system().ok().or_else(short).unwrap_or(TimeZone::UTC))
    }

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

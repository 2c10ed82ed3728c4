//! Devices as TOML: every figure has its unit in its name, is checked, and unknown keys are
//! refused.

use crate::Nanos;
use crate::spec::{DeviceSpec, Order};
use packfs_core::{Error, Result};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Longest description that is read.
pub(crate) const LEN_MAX: u64 = 64 << 10;
const KIB: u64 = 1 << 10;
/// Most microseconds of any latency: a day.
const MICROSECONDS_MAX: f64 = 86.4e9;

impl DeviceSpec {
    /// Reads a description; `place` is its name in errors.
    ///
    /// Errors: `Usage` with the line and the figure.
    pub fn parse(text: &str, place: &str) -> Result<DeviceSpec> {
        let spec: DeviceSpec = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let figure = figure_at(text, at).map_or_else(String::new, |figure| format!("{figure}: "));
            let line = 1 + text[..at].matches('\n').count();
            Error::usage(format!("device {place}: line {line}: {figure}{}", error.message().trim()))
                .hint("docs/guide/lab-devices.md describes the format")
        })?;
        match spec.contradiction() {
            Some(why) => Err(Error::usage(format!("device {place}: {why}"))),
            None => Ok(spec),
        }
    }

    /// Returns the first contradiction between figures.
    fn contradiction(&self) -> Option<String> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let (queue, write) = (&self.queue, self.write.as_ref());
        if !(1..=32).contains(&self.name.len()) || !self.name.bytes().all(is_name) {
            return Some(format!(
                "name = {:?}: 1 to 32 letters, digits, '-', '_' and '.' are allowed",
                self.name
            ));
        }
        if queue.channels > queue.depth {
            let (channels, depth) = (queue.channels, queue.depth);
            return Some(format!(
                "[queue] channels = {channels}: no more than depth = {depth} can be worked at"
            ));
        }
        let unfit = [
            (
                queue.order == Order::Nearest && (self.seek.is_none() || queue.channels != 1),
                "[queue] order = \"nearest\": only a device with [seek] and channels = 1 has a nearest request",
            ),
            (
                self.read.buffer > 0 && self.seek.is_none(),
                "[read] buffer_kib: only a device with [seek] reads ahead by itself",
            ),
            (self.read.cache + self.read.flush + self.read.discard > 0, "[read]: its figures are of writing"),
            (write.is_some_and(|write| write.buffer > 0), "[write] buffer_kib: it is a figure of reading"),
            (
                self.seek.as_ref().is_some_and(|seek| {
                    // The curve's slope is positive at its beginning and at its end, or further
                    // would be sooner somewhere.
                    let (root, line) = seek.curve();
                    root < 0.0 || root / 2.0 + line < 0.0
                }),
                "[seek]: no curve that rises goes through its three times: the average lies between a third and about \
                 three quarters of the way from track to track to full stroke",
            ),
        ];
        unfit.into_iter().find_map(|(is_unfit, why)| is_unfit.then(|| why.to_owned()))
    }
}

/// Returns the line at a place of a description, if it is a figure, with its table.
fn figure_at(text: &str, at: usize) -> Option<String> {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().filter(|line| line.contains('='))?.trim();
    let table = text[..start].lines().rev().map(str::trim).find(|line| line.starts_with('['));
    Some(table.map_or_else(|| line.to_owned(), |table| format!("{table} {line}")))
}

/// Reads a whole number in a range.
pub(crate) fn within<'de, const MIN: u32, const MAX: u32, D: Deserializer<'de>>(
    from: D,
) -> Result<u32, D::Error> {
    let value = u32::deserialize(from)?;
    if (MIN..=MAX).contains(&value) {
        return Ok(value);
    }
    Err(D::Error::custom(format!("{MIN} to {MAX} is allowed")))
}

/// Reads a length in KiB.
pub(crate) fn kibibytes<'de, const MAX: u32, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    within::<0, MAX, D>(from).map(|value| u64::from(value) * KIB)
}

/// Reads a figure in a range, which no value that is not a number is in.
fn figure<'de, D: Deserializer<'de>>(from: D, min: f64, max: f64) -> Result<f64, D::Error> {
    let value = f64::deserialize(from)?;
    if min <= value && value <= max {
        return Ok(value);
    }
    Err(D::Error::custom(format!("{min} to {max} is allowed")))
}

pub(crate) fn jitter<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    figure(from, 0.0, 90.0).map(|percent| percent / 100.0)
}

/// Reads MiB as bytes: whole pages, a petabyte at most.
pub(crate) fn capacity<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    figure(from, 1.0, 1e9).map(|mebibytes| (mebibytes * (KIB * KIB) as f64) as u64 / 4096 * 4096)
}

pub(crate) fn block_len<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let allowed = [512, 1024, 2048, 4096];
    let value = Some(u32::deserialize(from)?).filter(|value| allowed.contains(value));
    value.ok_or_else(|| D::Error::custom("512, 1024, 2048 or 4096 is allowed"))
}

/// Reads turns per minute as the time of one.
pub(crate) fn rotation<'de, D: Deserializer<'de>>(from: D) -> Result<Nanos, D::Error> {
    figure(from, 1.0, 1e6).map(|turns| (60e9 / turns) as Nanos)
}

/// Reads megabytes (millions) per second as bytes per second.
pub(crate) fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    figure(from, 0.001, 1e6).map(|megabytes| (megabytes * 1e6) as u64)
}

pub(crate) fn microseconds<'de, D: Deserializer<'de>>(from: D) -> Result<Nanos, D::Error> {
    figure(from, 0.0, MICROSECONDS_MAX).map(|value| (value * 1e3) as Nanos)
}

pub(crate) fn milliseconds<'de, D: Deserializer<'de>>(from: D) -> Result<Nanos, D::Error> {
    figure(from, 0.0, MICROSECONDS_MAX / 1e3).map(|value| (value * 1e6) as Nanos)
}

pub(crate) fn some_microseconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Nanos>, D::Error> {
    microseconds(from).map(Some)
}

pub(crate) fn some_rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    rate(from).map(Some)
}

pub(crate) fn some_float_rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    rate(from).map(|rate| Some(rate as f64))
}

pub(crate) fn some_iops<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    figure(from, 0.001, 1e8).map(Some)
}

pub(crate) fn some_request_rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    within::<1, 100_000_000, D>(from).map(Some)
}

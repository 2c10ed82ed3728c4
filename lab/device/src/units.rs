//! Figures of descriptions, converted from their units and checked.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// A time or a span of time in nanoseconds. Where times begin is the caller's business.
pub type Nanos = u64;

const KIB: u64 = 1 << 10;
/// Most microseconds of any latency: a day.
const MICROSECONDS_MAX: f64 = 86.4e9;

pub(crate) fn within<'de, const MIN: u32, const MAX: u32, D: Deserializer<'de>>(
    from: D,
) -> Result<u32, D::Error> {
    let value = u32::deserialize(from)?;
    if (MIN..=MAX).contains(&value) {
        return Ok(value);
    }
    Err(D::Error::custom(format!("{MIN} to {MAX} is allowed")))
}

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

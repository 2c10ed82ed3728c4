//! The figures of a device. Times are nanoseconds, rates bytes per second, lengths bytes.
//!
//! In TOML every figure has its unit in its name; [`crate::units`] converts and checks it.

use crate::Nanos;
use crate::units::{
    block_len, capacity, jitter, kibibytes, microseconds, milliseconds, rate, rotation, some_float_rate,
    some_iops, some_microseconds, some_rate, some_request_rate, within,
};
use serde::Deserialize;

/// A device, described by its figures. Made by [`DeviceSpec::parse`], which refuses contradictions.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// Name on the command line: `cdrom-48x`.
    pub name: String,
    /// Description in a few words.
    pub title: String,
    /// Origin of the figures.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Part by which latencies vary evenly to either side: 0.1 is a tenth.
    #[serde(default, rename = "jitter_percent", deserialize_with = "jitter")]
    pub jitter: f64,
    /// Seed of random figures.
    #[serde(default)]
    pub seed: u32,
    /// The medium that holds the data.
    pub medium: Medium,
    /// The way of requests to the device.
    pub queue: Queue,
    /// The bus that requests share.
    pub bus: Bus,
    /// Reading.
    pub read: Access,
    /// Writing; `None` for read-only devices.
    pub write: Option<Access>,
    /// Moving parts; `None` without any.
    pub seek: Option<Seek>,
    /// Limits of the service.
    #[serde(default)]
    pub limits: Limits,
    /// Figures that its maker states, or others have measured; others follow from the rest.
    #[serde(default)]
    pub stated: Stated,
}

/// The medium that holds the data.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Medium {
    /// Bytes of the whole device. An image lies at its beginning.
    #[serde(rename = "capacity_mib", deserialize_with = "capacity")]
    pub capacity: u64,
    /// Length of a logical block, the least that is read.
    #[serde(rename = "block_bytes", deserialize_with = "block_len")]
    pub block_len: u32,
    /// Set if the kernel is to take it for a disk that turns.
    #[serde(default)]
    pub rotational: bool,
}

/// The way of requests to the device.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Requests that the device chooses among, at most.
    #[serde(deserialize_with = "within::<1, 1024, _>")]
    pub depth: u32,
    /// Requests that it works at at a time.
    #[serde(deserialize_with = "within::<1, 128, _>")]
    pub channels: u32,
    /// The request that it takes first.
    #[serde(default)]
    pub order: Order,
    /// Readahead of the kernel, in KiB (`read_ahead_kb`).
    #[serde(deserialize_with = "within::<0, 65536, _>")]
    pub read_ahead_kib: u32,
    /// Longest request that the kernel sends, in KiB (`max_sectors_kb`).
    #[serde(rename = "max_request_kib", deserialize_with = "within::<4, 1024, _>")]
    pub request_kib_max: u32,
    /// The kernel's scheduler in front of it.
    #[serde(default)]
    pub scheduler: Scheduler,
}

/// The one of several requests that a device takes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The oldest.
    #[default]
    Fifo,
    /// The one that is nearest to where it is (NCQ, elevators).
    Nearest,
}

/// A scheduler of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// None.
    #[default]
    None,
    /// `mq-deadline`.
    MqDeadline,
}

impl Scheduler {
    /// Returns the spelling of sysfs.
    pub fn word(self) -> &'static str {
        match self {
            Scheduler::None => "none",
            Scheduler::MqDeadline => "mq-deadline",
        }
    }
}

/// The bus that requests share.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// Time that each request takes of the bus beside its bytes.
    #[serde(default, rename = "overhead_us", deserialize_with = "microseconds")]
    pub overhead: Nanos,
    /// Bytes per second.
    #[serde(rename = "mb_per_s", deserialize_with = "rate")]
    pub rate: u64,
}

/// Reading or writing.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Time from the beginning of a request to its first byte, if it does not follow an earlier
    /// one; without seeking.
    #[serde(rename = "latency_us", deserialize_with = "microseconds")]
    pub latency: Nanos,
    #[serde(default, rename = "sequential_latency_us", deserialize_with = "some_microseconds")]
    sequential_latency: Option<Nanos>,
    /// Bytes per second at the beginning of the medium.
    #[serde(rename = "mb_per_s", deserialize_with = "rate")]
    pub rate: u64,
    /// `None` for the rate at the beginning. In between it follows the radius, of a medium that is
    /// equally dense everywhere.
    #[serde(default, rename = "mb_per_s_at_end", deserialize_with = "some_rate")]
    rate_at_end: Option<u64>,
    /// Bytes that it reads ahead by itself while idle, if it has moving parts; reading only.
    #[serde(default, rename = "buffer_kib", deserialize_with = "kibibytes::<1048576, _>")]
    pub buffer: u64,
    /// Bytes that are acknowledged before they are written; writing only.
    #[serde(default, rename = "cache_kib", deserialize_with = "kibibytes::<16777216, _>")]
    pub cache: u64,
    /// Time of a flush beside writing the cache; writing only.
    #[serde(default, rename = "flush_us", deserialize_with = "microseconds")]
    pub flush: Nanos,
    /// Time of discarding a range; writing only.
    #[serde(default, rename = "discard_us", deserialize_with = "microseconds")]
    pub discard: Nanos,
}

/// Time that a device with moving parts takes to get somewhere.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seek {
    /// To the next track.
    #[serde(rename = "track_to_track_ms", deserialize_with = "milliseconds")]
    pub track_to_track: Nanos,
    /// Over a third of the medium, the mean distance of random requests.
    #[serde(rename = "average_ms", deserialize_with = "milliseconds")]
    pub average: Nanos,
    /// Over all of it.
    #[serde(rename = "full_stroke_ms", deserialize_with = "milliseconds")]
    pub full_stroke: Nanos,
    /// One turn; a request waits for a random part of it.
    #[serde(rename = "rpm", deserialize_with = "rotation")]
    pub rotation: Nanos,
}

/// Limits that a device is held to, whatever it could do.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Requests per second.
    #[serde(deserialize_with = "some_request_rate")]
    pub iops: Option<u32>,
    /// A request counts once for each so many bytes begun; 0: once.
    #[serde(rename = "iops_unit_kib", deserialize_with = "kibibytes::<1048576, _>")]
    pub iops_unit: u64,
    /// Bytes per second, reads and writes together.
    #[serde(rename = "mb_per_s", deserialize_with = "some_rate")]
    pub rate: Option<u64>,
}

/// Stated figures of a device as a whole, to be held against a measurement.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stated {
    /// Sequential reading at the beginning of the medium, bytes per second.
    #[serde(rename = "read_mb_per_s", deserialize_with = "some_float_rate")]
    pub read_rate: Option<f64>,
    /// Sequential writing there, bytes per second.
    #[serde(rename = "write_mb_per_s", deserialize_with = "some_float_rate")]
    pub write_rate: Option<f64>,
    /// Random reads of 4 KiB per second, one at a time.
    #[serde(deserialize_with = "some_iops")]
    pub read_iops_1: Option<f64>,
    /// The same, 32 at a time.
    #[serde(deserialize_with = "some_iops")]
    pub read_iops_32: Option<f64>,
    /// Random writes of 4 KiB per second, one at a time.
    #[serde(deserialize_with = "some_iops")]
    pub write_iops_1: Option<f64>,
    /// The same, 32 at a time.
    #[serde(deserialize_with = "some_iops")]
    pub write_iops_32: Option<f64>,
}

impl Access {
    /// Time from the beginning of a request to its first byte, if it follows an earlier one.
    pub fn sequential_latency(&self) -> Nanos {
        self.sequential_latency.unwrap_or(self.latency)
    }

    /// Bytes per second at the end of the medium.
    pub fn rate_at_end(&self) -> u64 {
        self.rate_at_end.unwrap_or(self.rate)
    }

    /// Bytes per second behind `part` of the medium (0 to 1).
    pub fn rate_at(&self, part: f64) -> f64 {
        let (start, end) = (self.rate as f64, self.rate_at_end() as f64);
        // Constant turns per second: the rate goes with the radius, and the square of the radius
        // with the bytes before it.
        (start * start + part.clamp(0.0, 1.0) * (end * end - start * start)).sqrt()
    }
}

impl Seek {
    /// Returns the time of moving over `part` of the medium (0 to 1): a curve of a root and a line
    /// through the three figures.
    pub fn time(&self, part: f64) -> Nanos {
        if part <= 0.0 {
            return 0;
        }
        let (root, line) = self.curve();
        let part = part.min(1.0);
        (self.track_to_track as f64 + root * part.sqrt() + line * part).max(0.0) as Nanos
    }

    pub(crate) fn curve(&self) -> (f64, f64) {
        let third = (1.0_f64 / 3.0).sqrt();
        let average = self.average as f64 - self.track_to_track as f64;
        let full = self.full_stroke as f64 - self.track_to_track as f64;
        let root = (average - full / 3.0) / (third - 1.0 / 3.0);
        (root, full - root)
    }
}

impl DeviceSpec {
    /// True if it can be written.
    pub fn is_writable(&self) -> bool {
        self.write.is_some()
    }

    /// Bytes that are acknowledged before they are written; 0 without a cache.
    pub fn write_cache(&self) -> u64 {
        self.write.as_ref().map_or(0, |write| write.cache)
    }
}

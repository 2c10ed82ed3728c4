//! Devices as TOML: every figure has its unit in its name, is checked, and nothing unknown is
//! passed over.

use crate::spec::{Access, Bus, DeviceSpec, Limits, Medium, Order, Queue, Scheduler, Seek, Stated};
use packfs_core::{Error, Result};
use serde::Deserialize;
use std::fmt::Display;

/// Longest description that is read.
pub(crate) const LEN_MAX: u64 = 64 << 10;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// A day, in microseconds: nothing waits longer.
const MICROSECONDS_MAX: f64 = 86.4e9;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    #[serde(default)]
    sources: Vec<String>,
    #[serde(default)]
    jitter_percent: f64,
    #[serde(default)]
    seed: u32,
    medium: MediumTable,
    queue: QueueTable,
    bus: BusTable,
    read: AccessTable,
    write: Option<WriteTable>,
    seek: Option<SeekTable>,
    #[serde(default)]
    limits: LimitsTable,
    #[serde(default)]
    stated: StatedTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MediumTable {
    capacity_mib: f64,
    block_bytes: u32,
    #[serde(default)]
    rotational: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueTable {
    depth: u32,
    channels: u32,
    #[serde(default)]
    order: Order,
    read_ahead_kib: u32,
    max_request_kib: u32,
    #[serde(default)]
    scheduler: Scheduler,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BusTable {
    #[serde(default)]
    overhead_us: f64,
    mb_per_s: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccessTable {
    latency_us: f64,
    sequential_latency_us: Option<f64>,
    mb_per_s: f64,
    mb_per_s_at_end: Option<f64>,
    #[serde(default)]
    buffer_kib: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteTable {
    latency_us: f64,
    sequential_latency_us: Option<f64>,
    mb_per_s: f64,
    mb_per_s_at_end: Option<f64>,
    #[serde(default)]
    cache_kib: u64,
    #[serde(default)]
    flush_us: f64,
    #[serde(default)]
    discard_us: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeekTable {
    track_to_track_ms: f64,
    average_ms: f64,
    full_stroke_ms: f64,
    rpm: f64,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    iops: Option<u32>,
    #[serde(default)]
    iops_unit_kib: u64,
    mb_per_s: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatedTable {
    read_mb_per_s: Option<f64>,
    write_mb_per_s: Option<f64>,
    read_iops_1: Option<f64>,
    read_iops_32: Option<f64>,
    write_iops_1: Option<f64>,
    write_iops_32: Option<f64>,
}

impl DeviceSpec {
    /// Reads a description; `place` is what errors name.
    ///
    /// Errors: `Usage` with the line for what is no TOML or not known, with the figure for what
    /// makes no sense.
    pub fn parse(text: &str, place: &str) -> Result<DeviceSpec> {
        let file: File = toml::from_str(text).map_err(|error| {
            let line =
                error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            Error::usage(format!("device {place}: line {line}: {}", error.message().trim()))
                .hint("docs/guide/lab-devices.md describes the format")
        })?;
        Checked(place).spec(file)
    }
}

/// Checks figures of the description of this name.
struct Checked<'a>(&'a str);

impl Checked<'_> {
    fn spec(&self, file: File) -> Result<DeviceSpec> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if file.name.is_empty() || file.name.len() > 32 || !file.name.bytes().all(is_name) {
            let found = format!("name = {:?}", file.name);
            return Err(self.wrong(&found, "1 to 32 letters, digits, '-', '_' and '.' are allowed"));
        }
        let medium = self.medium(&file.medium)?;
        let queue = self.queue(&file.queue)?;
        let seek = file.seek.as_ref().map(|seek| self.seek(seek)).transpose()?;
        if queue.order == Order::Nearest && (seek.is_none() || queue.channels != 1) {
            let why = "only a device with [seek] and channels = 1 has a nearest request";
            return Err(self.wrong("[queue] order = \"nearest\"", why));
        }
        let read = self.access(
            "read",
            [file.read.latency_us, file.read.sequential_latency_us.unwrap_or(file.read.latency_us)],
            [file.read.mb_per_s, file.read.mb_per_s_at_end.unwrap_or(file.read.mb_per_s)],
        )?;
        if file.read.buffer_kib > 0 && seek.is_none() {
            return Err(self.wrong("[read] buffer_kib", "only a device with [seek] reads ahead by itself"));
        }
        let read_buffer = self.within("[read] buffer_kib", file.read.buffer_kib, 0, MIB)? * KIB;
        let mut spec = DeviceSpec {
            name: file.name,
            title: file.title,
            sources: file.sources,
            medium,
            queue,
            bus: Bus {
                overhead: self.microseconds("[bus] overhead_us", file.bus.overhead_us)?,
                rate: self.rate("[bus] mb_per_s", file.bus.mb_per_s)?,
            },
            read,
            write: None,
            flush: 0,
            discard: 0,
            seek,
            read_buffer,
            write_cache: 0,
            limits: self.limits(&file.limits)?,
            jitter: self.within("jitter_percent", file.jitter_percent, 0.0, 90.0)? / 100.0,
            seed: u64::from(file.seed),
            stated: self.stated(&file.stated)?,
        };
        if let Some(write) = &file.write {
            spec.write = Some(self.access(
                "write",
                [write.latency_us, write.sequential_latency_us.unwrap_or(write.latency_us)],
                [write.mb_per_s, write.mb_per_s_at_end.unwrap_or(write.mb_per_s)],
            )?);
            spec.write_cache = self.within("[write] cache_kib", write.cache_kib, 0, 16 * MIB)? * KIB;
            spec.flush = self.microseconds("[write] flush_us", write.flush_us)?;
            spec.discard = self.microseconds("[write] discard_us", write.discard_us)?;
        }
        Ok(spec)
    }

    fn medium(&self, table: &MediumTable) -> Result<Medium> {
        // 8 EiB is as long as a file may be; a petabyte is more than anybody simulates.
        let capacity = self.within("[medium] capacity_mib", table.capacity_mib, 1.0, 1e9)? * MIB as f64;
        let block_len = table.block_bytes;
        if ![512, 1024, 2048, 4096].contains(&block_len) {
            let found = format!("[medium] block_bytes = {block_len}");
            return Err(self.wrong(&found, "512, 1024, 2048 or 4096 is allowed"));
        }
        let capacity = capacity as u64 / 4096 * 4096;
        Ok(Medium { capacity, block_len, rotational: table.rotational })
    }

    fn queue(&self, table: &QueueTable) -> Result<Queue> {
        let queue = Queue {
            depth: self.within("[queue] depth", table.depth, 1, 1024)?,
            channels: self.within("[queue] channels", table.channels, 1, 128)?,
            order: table.order,
            read_ahead_kib: self.within("[queue] read_ahead_kib", table.read_ahead_kib, 0, 64 << 10)?,
            request_kib_max: self.within("[queue] max_request_kib", table.max_request_kib, 4, 1 << 10)?,
            scheduler: table.scheduler,
        };
        if queue.channels > queue.depth {
            let found = format!("[queue] channels = {}", queue.channels);
            return Err(self.wrong(&found, &format!("no more than depth = {} can be worked at", queue.depth)));
        }
        Ok(queue)
    }

    fn access(&self, table: &str, latencies: [f64; 2], rates: [f64; 2]) -> Result<Access> {
        Ok(Access {
            latency: self.microseconds(&format!("[{table}] latency_us"), latencies[0])?,
            sequential_latency: self
                .microseconds(&format!("[{table}] sequential_latency_us"), latencies[1])?,
            rate: self.rate(&format!("[{table}] mb_per_s"), rates[0])?,
            rate_at_end: self.rate(&format!("[{table}] mb_per_s_at_end"), rates[1])?,
        })
    }

    fn seek(&self, table: &SeekTable) -> Result<Seek> {
        let seek = Seek {
            track_to_track: self.milliseconds("[seek] track_to_track_ms", table.track_to_track_ms)?,
            average: self.milliseconds("[seek] average_ms", table.average_ms)?,
            full_stroke: self.milliseconds("[seek] full_stroke_ms", table.full_stroke_ms)?,
            rotation: (60e9 / self.within("[seek] rpm", table.rpm, 1.0, 1e6)?) as u64,
        };
        let (root, line) = seek.curve();
        // The curve's slope: positive at its beginning and at its end, or further would be sooner
        // somewhere.
        if root < 0.0 || root / 2.0 + line < 0.0 {
            let found = format!(
                "[seek] track_to_track_ms = {}, average_ms = {}, full_stroke_ms = {}",
                table.track_to_track_ms, table.average_ms, table.full_stroke_ms
            );
            let why = "no curve that rises goes through them: the average lies between a third and about three quarters of \
                       the way from track to track to full stroke";
            return Err(self.wrong(&found, why));
        }
        Ok(seek)
    }

    fn limits(&self, table: &LimitsTable) -> Result<Limits> {
        Ok(Limits {
            iops: table.iops.map(|iops| self.within("[limits] iops", iops, 1, 100_000_000)).transpose()?,
            iops_unit: self.within("[limits] iops_unit_kib", table.iops_unit_kib, 0, MIB)? * KIB,
            rate: table.mb_per_s.map(|rate| self.rate("[limits] mb_per_s", rate)).transpose()?,
        })
    }

    fn stated(&self, table: &StatedTable) -> Result<Stated> {
        let rate = |name: &str, value: Option<f64>| {
            value
                .map(|value| self.rate(&format!("[stated] {name}"), value).map(|rate| rate as f64))
                .transpose()
        };
        let iops = |name: &str, value: Option<f64>| {
            value.map(|value| self.within(&format!("[stated] {name}"), value, 0.001, 1e8)).transpose()
        };
        Ok(Stated {
            read_rate: rate("read_mb_per_s", table.read_mb_per_s)?,
            write_rate: rate("write_mb_per_s", table.write_mb_per_s)?,
            read_iops_1: iops("read_iops_1", table.read_iops_1)?,
            read_iops_32: iops("read_iops_32", table.read_iops_32)?,
            write_iops_1: iops("write_iops_1", table.write_iops_1)?,
            write_iops_32: iops("write_iops_32", table.write_iops_32)?,
        })
    }

    /// Megabytes (millions) per second as bytes per second.
    fn rate(&self, name: &str, value: f64) -> Result<u64> {
        Ok((self.within(name, value, 0.001, 1e6)? * 1e6) as u64)
    }

    fn microseconds(&self, name: &str, value: f64) -> Result<u64> {
        Ok((self.within(name, value, 0.0, MICROSECONDS_MAX)? * 1000.0) as u64)
    }

    fn milliseconds(&self, name: &str, value: f64) -> Result<u64> {
        Ok((self.within(name, value, 0.0, MICROSECONDS_MAX / 1000.0)? * 1e6) as u64)
    }

    /// Refuses a value outside of a range, in which no value that is not a number is.
    fn within<T: PartialOrd + Display>(&self, name: &str, value: T, min: T, max: T) -> Result<T> {
        if min <= value && value <= max {
            return Ok(value);
        }
        Err(self.wrong(&format!("{name} = {value}"), &format!("{min} to {max} is allowed")))
    }

    fn wrong(&self, found: &str, allowed: &str) -> Error {
        Error::usage(format!("device {}: {found}: {allowed}", self.0))
    }
}

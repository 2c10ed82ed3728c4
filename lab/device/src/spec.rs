//! The figures of a device. Times are nanoseconds, rates bytes per second, lengths bytes.

use crate::Nanos;
use serde::Deserialize;

/// A device, as its figures describe it. Made by [`DeviceSpec::parse`], which refuses what makes no
/// sense.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSpec {
    /// What it is called on the command line: `cdrom-48x`.
    pub name: String,
    /// What it is, in a few words.
    pub title: String,
    /// Where the figures are from.
    pub sources: Vec<String>,
    /// What holds the data.
    pub medium: Medium,
    /// How requests reach it.
    pub queue: Queue,
    /// What they go through on the way.
    pub bus: Bus,
    /// Reading.
    pub read: Access,
    /// Writing; `None`: it cannot be written.
    pub write: Option<Access>,
    /// What a flush takes beside writing what the cache holds.
    pub flush: Nanos,
    /// What discarding a range takes.
    pub discard: Nanos,
    /// What moves; `None`: nothing does.
    pub seek: Option<Seek>,
    /// How far it reads ahead by itself while nobody asks; 0: not at all. Only of what moves.
    pub read_buffer: u64,
    /// How much is acknowledged before it is written; 0: nothing.
    pub write_cache: u64,
    /// What it is held to.
    pub limits: Limits,
    /// Latencies vary evenly by up to this part of themselves, to either side: 0.1 is a tenth.
    pub jitter: f64,
    /// Where random figures begin.
    pub seed: u64,
    /// What its maker states, or others have measured; what is missing follows from the other
    /// figures.
    pub stated: Stated,
}

/// What holds the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Medium {
    /// Bytes of the whole device. An image lies at its beginning.
    pub capacity: u64,
    /// Length of a logical block: what is read at the least.
    pub block_len: u32,
    /// Whether the kernel takes it for a disk that turns.
    pub rotational: bool,
}

/// How requests reach the device.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Requests that the device chooses among, at most.
    pub depth: u32,
    /// Requests that it works at at a time.
    pub channels: u32,
    /// Which one it takes first.
    pub order: Order,
    /// How far the kernel reads ahead, in KiB (`read_ahead_kb`).
    pub read_ahead_kib: u32,
    /// Longest request that the kernel sends, in KiB (`max_sectors_kb`).
    pub request_kib_max: u32,
    /// The kernel's scheduler in front of it.
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
    /// As sysfs spells it.
    pub fn word(self) -> &'static str {
        match self {
            Scheduler::None => "none",
            Scheduler::MqDeadline => "mq-deadline",
        }
    }
}

/// What requests go through on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Bus {
    /// What each request takes of the bus's time beside its bytes.
    pub overhead: Nanos,
    /// Bytes per second.
    pub rate: u64,
}

/// Reading or writing.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// From the beginning of a request to its first byte, where it does not follow an earlier one;
    /// without what seeking takes.
    pub latency: Nanos,
    /// The same where it does.
    pub sequential_latency: Nanos,
    /// Bytes per second at the beginning of the medium.
    pub rate: u64,
    /// And at its end; in between it follows the radius, of a medium that is equally dense
    /// everywhere.
    pub rate_at_end: u64,
}

/// What a device that moves takes to get somewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Seek {
    /// To the next track.
    pub track_to_track: Nanos,
    /// Over a third of the medium, which is what random requests are apart.
    pub average: Nanos,
    /// Over all of it.
    pub full_stroke: Nanos,
    /// One turn. What is waited for is a random part of it.
    pub rotation: Nanos,
}

/// What a device is held to, whatever it could do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Requests per second.
    pub iops: Option<u32>,
    /// A request counts once for each so many bytes begun; 0: once.
    pub iops_unit: u64,
    /// Bytes per second, reads and writes together.
    pub rate: Option<u64>,
}

/// What is stated of a device as a whole, to be held against a measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stated {
    /// Sequential reading at the beginning of the medium, bytes per second.
    pub read_rate: Option<f64>,
    /// Sequential writing there, bytes per second.
    pub write_rate: Option<f64>,
    /// Random reads of 4 KiB per second, one at a time.
    pub read_iops_1: Option<f64>,
    /// The same, 32 at a time.
    pub read_iops_32: Option<f64>,
    /// Random writes of 4 KiB per second, one at a time.
    pub write_iops_1: Option<f64>,
    /// The same, 32 at a time.
    pub write_iops_32: Option<f64>,
}

impl Access {
    /// Bytes per second where `part` of the medium (0 to 1) lies before.
    pub fn rate_at(&self, part: f64) -> f64 {
        let (start, end) = (self.rate as f64, self.rate_at_end as f64);
        // Constant turns per second: the rate goes with the radius, and the square of the radius
        // with the bytes before it.
        (start * start + part.clamp(0.0, 1.0) * (end * end - start * start)).sqrt()
    }
}

impl Seek {
    /// What moving over `part` of the medium (0 to 1) takes: a curve of a root and a line through
    /// the three figures.
    pub fn time(&self, part: f64) -> Nanos {
        if part <= 0.0 {
            return 0;
        }
        let (root, line) = self.curve();
        let part = part.min(1.0);
        (self.track_to_track as f64 + root * part.sqrt() + line * part).max(0.0) as Nanos
    }

    /// Factors of the root and of the line.
    pub(crate) fn curve(&self) -> (f64, f64) {
        let third = (1.0_f64 / 3.0).sqrt();
        let average = self.average as f64 - self.track_to_track as f64;
        let full = self.full_stroke as f64 - self.track_to_track as f64;
        let root = (average - full / 3.0) / (third - 1.0 / 3.0);
        (root, full - root)
    }
}

impl DeviceSpec {
    /// Whether it can be written.
    pub fn is_writable(&self) -> bool {
        self.write.is_some()
    }
}

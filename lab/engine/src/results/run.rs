//! Runs, as they were measured.

use serde::{Deserialize, Serialize};

/// One cell: a subject under a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// Name of the workload: `build`, `sequential-data`, `random-metadata-7%`, ...
    pub workload: String,
    /// The subject's `id`.
    pub subject: String,
    /// Its reader: `kernel`, `packfs-fuse`, `packfs`, `squashfuse_ll`, ...; none where nothing is
    /// read (building).
    pub reader: Option<String>,
    /// The device's `id`.
    pub device: String,
    /// Threads the program was given, where the workload says.
    pub jobs: Option<u32>,
    /// The command of one run, as one would type it.
    pub command: String,
    /// Measured ones only, in the order they ran.
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Seconds from start to end.
    pub wall: f64,
    /// Seconds of processor time of the program and its children in user mode.
    pub user: f64,
    /// The same in the kernel.
    pub system: f64,
    /// Most memory the program had resident, or the one that served a mount, in bytes; none where
    /// several programs took part.
    pub memory_peak: Option<u64>,
    /// Bytes that the workload read or wrote as its user sees them; none where that says nothing.
    pub bytes: Option<u64>,
    /// Bytes that came from the device; none where they are not counted.
    pub device_bytes: Option<u64>,
    /// Requests in which they came; none where they are not counted.
    pub device_requests: Option<u64>,
    /// Disturbance by others.
    pub noise: Noise,
    /// Faithfulness of the simulated device to its model; none without one.
    pub simulation: Option<Simulation>,
}

/// Faithfulness of a simulated device to its model during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simulation {
    /// Number of requests.
    pub requests: u64,
    /// Requests that were answered more than a tenth of a millisecond later than the model says.
    pub late: u64,
    /// By how much those were late, in seconds, summed up.
    pub lateness: f64,
    /// True if what it holds lay in memory, so that no other device had a part in it.
    pub in_memory: bool,
    /// Attributes of its queue that the kernel did not take.
    pub refused_attributes: u32,
}

impl Simulation {
    /// Returns the part of the requests that was late, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "digits beyond those that are shown")]
    pub fn late_share(&self) -> f64 {
        // What was late may have been asked for before the run.
        self.late as f64 / self.requests.max(self.late).max(1) as f64
    }
}

impl Run {
    /// True if its simulated device fell behind its model: more than the part `most` of its
    /// requests were late, and that by more than this part of the run's time, all together. Many
    /// that are hardly late change nothing.
    pub fn fell_behind(&self, most: f64) -> bool {
        self.simulation.is_some_and(|it| it.late_share() > most && it.lateness > most * self.wall)
    }
}

/// Disturbance during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Processor seconds that others than the run used meanwhile (`/proc/stat`).
    pub others_cpu: f64,
    /// Processor seconds that the host took away (steal time).
    pub stolen_cpu: f64,
}

/// Something that was asked for and could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// The cell, subject, program or device.
    pub what: String,
    /// Why, and what would help: `mkdwarfs is not on PATH`.
    pub why: String,
}

//! Results of a session: one JSON document for every kind of measurement.
//!
//! Figures are kept as they were measured, run by run; medians and spreads are computed for
//! display ([`Spread`]). Lengths are in bytes, times in seconds. Names that refer to other parts
//! of the document are the `id`s of these parts.

pub(crate) mod file;
mod run;
mod spread;
mod subject;
mod table;

use serde::{Deserialize, Serialize};

pub use file::NAME as FILE;
pub use run::{Measurement, Missing, Noise, Run, Simulation};
pub use spread::Spread;
pub use subject::{CodecUsage, Recipe, Subject, spelled_len};
pub use table::{Cell, Column, Table, Unit};

/// Everything about one session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// Name of its form, with a number.
    pub schema: String,
    /// Its title: `erofs-perf`, or the user's.
    pub title: String,
    /// The settings.
    pub settings: Settings,
    /// Place and time.
    pub machine: Machine,
    /// Programs and drivers that took part.
    pub programs: Vec<Program>,
    /// Trees that subjects hold.
    pub trees: Vec<TreeFacts>,
    /// Devices below subjects.
    pub devices: Vec<DeviceFacts>,
    /// Measured subjects.
    pub subjects: Vec<Subject>,
    /// Labels of all cells that the session is to measure.
    pub cells: Vec<String>,
    /// Labels of the cells without runs whose subject is counted.
    pub counted: Vec<String>,
    /// The figures, cell by cell.
    pub measurements: Vec<Measurement>,
    /// Missing cells, subjects, programs and devices.
    pub missing: Vec<Missing>,
    /// The tables that this session was made for, in their order: computed from the rest.
    pub tables: Vec<Table>,
}

/// Settings of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The command line that runs it again.
    pub command: String,
    /// True if it was cut down to minutes.
    pub quick: bool,
    /// Measured runs of each cell, after the ones that warm up.
    pub runs: u32,
    /// Seed of random choices, so that the same files are read again.
    pub seed: u64,
    /// Limit of processors for programs; none for all.
    pub cpu_limit: Option<CpuLimit>,
    /// Most threads of programs where a workload does not vary them.
    pub jobs: Option<u32>,
}

impl Settings {
    /// Runs of each cell before those that are measured: one, but none before a single run.
    pub fn warm_ups(&self) -> u32 {
        u32::from(self.runs > 1)
    }

    /// Returns the same with so many runs where their number is left open, as 0.
    pub fn or_runs(&self, usual: u32) -> Self {
        Self { runs: if self.runs == 0 { usual } else { self.runs }, ..self.clone() }
    }
}

/// Limit of processors for the programs and FUSE servers of a session. Threads of the kernel are
/// not limited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuLimit {
    /// Number of processors: 0.5 is half the time of one.
    pub cpus: f64,
    /// Mechanism: `cgroup v2 (cpu.max)`.
    pub way: String,
}

impl CpuLimit {
    /// In words: `0.5 processors by cgroup v2 (cpu.max)`.
    pub fn spelled(&self) -> String {
        let unit = if self.cpus == 1.0 { "processor" } else { "processors" };
        format!("{} {unit} by {}", self.cpus, self.way)
    }
}

/// Place and time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Model name, as the processor tells it.
    pub processor: String,
    /// Processors this process may use.
    pub processor_count: u32,
    /// Main memory, in bytes.
    pub memory_bytes: u64,
    /// `Linux 6.18.5`.
    pub kernel: String,
    /// The distribution's name.
    pub system: String,
    /// Type of file system and device that images lay on.
    pub scratch: String,
    /// UTC, RFC 3339.
    pub started: String,
    /// UTC, RFC 3339; none while it goes on.
    pub finished: Option<String>,
}

/// A program, or a driver of the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its makers' version.
    pub version: String,
    /// Its path; none for drivers.
    pub path: Option<String>,
}

/// A tree that images were made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeFacts {
    /// `debian`, `linux`, or the last part of the path.
    pub id: String,
    /// Description, and the command that makes it.
    pub made_by: String,
    /// Regular files, each hard link counted.
    pub files: u64,
    /// Directories, the root included.
    pub dirs: u64,
    /// Everything that is neither: links, devices, sockets, pipes.
    pub others: u64,
    /// Sum of the lengths of files, each hard link counted once.
    pub bytes: u64,
}

/// A device below images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceFacts {
    /// `disk` for the machine's own, `memory`, or the name of a simulated device.
    pub id: String,
    /// Description in a sentence.
    pub description: String,
    /// True if its speed is a model's.
    pub simulated: bool,
}

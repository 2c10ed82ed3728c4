//! What is answered, as data and in words.

use super::Want;
use super::candidates::LeftOut;
use super::check::Truth;
use super::figures::{aligned, seconds};
use super::forecast::size::Size;
use super::row::Row;
use serde::Serialize;

/// What was looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Looked {
    /// Bytes of all files.
    pub bytes: u64,
    /// Regular files.
    pub files: u64,
    /// Bytes of files that every candidate packed.
    pub sampled: u64,
    /// In how many samples.
    pub samples: usize,
    /// Whether these are the whole tree.
    pub whole: bool,
    /// Where choices began.
    pub seed: u64,
}

/// The processor that was measured with, and is assumed wherever the image is read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Processor {
    /// As it calls itself; `unknown` if it does not.
    pub name: String,
    /// Number of threads that it runs at the same time.
    pub count: usize,
    /// Number of threads that packed.
    pub jobs: usize,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The command that makes the image.
    pub command: String,
    /// What the image is wanted for.
    pub want: Want,
    /// The device's name.
    pub device: String,
    /// What it is.
    pub device_title: String,
    /// The kernel it is for.
    pub kernel: String,
    /// True if nobody named that kernel: it is the one that runs here.
    pub kernel_assumed: bool,
    /// The processor that times of reading and building are of.
    pub processor: Processor,
    /// What reading times are of.
    pub workload: String,
    /// What they were forecast from.
    pub looked: Looked,
    /// Every candidate, from the recommended one on.
    pub rows: Vec<Row>,
    /// Why.
    pub reasons: Vec<String>,
    /// What was not considered.
    pub left_out: Vec<LeftOut>,
    /// What else should be known.
    pub notes: Vec<String>,
    /// What really came of the first two, if that was asked for.
    pub truth: Vec<Truth>,
    /// Seconds that answering took.
    pub took: f64,
}

const KIB: f64 = (1 << 10) as f64;
const MIB: f64 = (1 << 20) as f64;

/// What figures are given in, so that small trees are not all `0.0`.
struct Unit {
    name: &'static str,
    size: f64,
}

impl Unit {
    /// For lengths of which the least is this.
    fn of_bytes(least: u64) -> Unit {
        if (least as f64) < MIB { Unit { name: "KiB", size: KIB } } else { Unit { name: "MiB", size: MIB } }
    }

    /// For times of which the least is this.
    fn of_seconds(least: f64) -> Unit {
        if least < 0.1 { Unit { name: "ms", size: 1e-3 } } else { Unit { name: "s", size: 1.0 } }
    }

    fn figure(&self, value: f64, digits: usize) -> String {
        format!("{:.digits$}", value / self.size)
    }
}

impl Answer {
    /// The answer for people, line by line.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let [best, ..] = &self.rows[..] {
            lines.push(self.command.clone());
            lines.push(String::new());
            lines.push(format!("  image   {}", size_words(&best.size)));
            lines.push(format!(
                "  read    {} on {} ({}): forecast",
                seconds(best.read.seconds),
                self.device,
                self.workload
            ));
            lines.push(format!(
                "  build   {} of processor time, {} here: forecast",
                seconds(best.build.cpu),
                seconds(best.build.wall)
            ));
            lines.push(format!("  kernel  {}", kernel_words(&self.kernel, self.kernel_assumed)));
            lines.push(format!("  CPU     {}", self.processor_words(best)));
            lines.push(String::new());
        }
        lines.extend(self.reasons.iter().cloned());
        lines.push(String::new());
        lines.extend(self.table());
        lines.push(String::new());
        lines.push(self.looked_words());
        lines.extend(self.notes.iter().cloned());
        for left in &self.left_out {
            lines.push(format!("Left out: {}: {}", left.candidate, left.reason));
        }
        if !self.truth.is_empty() {
            lines.push(String::new());
            lines.extend(super::check::lines(&self.truth, &self.device));
        }
        lines.push(format!("Answered in {}.", seconds(self.took)));
        lines
    }

    /// The processor that figures are of, in figures that another one can be held against.
    fn processor_words(&self, best: &Row) -> String {
        let Processor { name, count, jobs } = &self.processor;
        format!(
            "this machine's is assumed: {name}, {count} at once, {jobs} of them packing; it decodes {:.0} MiB/s of this image",
            best.decodes_mib_per_second
        )
    }

    fn table(&self) -> Vec<String> {
        let sizes = self.rows.iter().map(|row| row.size.bytes);
        let unit = Unit::of_bytes(sizes.min().unwrap_or(0));
        let reads = self.rows.iter().map(|row| row.read.seconds);
        let read_unit = Unit::of_seconds(reads.fold(f64::INFINITY, f64::min));
        let read = format!("read, {}", read_unit.name);
        let head = ["", unit.name, "+-", &read, "build, s CPU", "decode, MiB/s"].map(String::from);
        let mut rows = vec![head.to_vec()];
        for row in &self.rows {
            let front = if row.on_front { "*" } else { " " };
            rows.push(vec![
                format!("{front} {row}"),
                unit.figure(row.size.bytes as f64, 1),
                if row.size.error > 0.0 {
                    format!("{:.1} %", row.size.error * 100.0)
                } else {
                    "exact".into()
                },
                format!(
                    "{}{}",
                    if row.kernel_measured { "" } else { "~" },
                    read_unit.figure(row.read.seconds, 2)
                ),
                format!("{:.1}", row.build.cpu),
                format!("{:.0}", row.decodes_mib_per_second),
            ]);
        }
        let mut lines = aligned(&rows);
        lines.push("* nothing listed is both smaller and read sooner".into());
        if self.rows.iter().any(|row| !row.kernel_measured) {
            lines.push("~ what decoding takes the kernel is told from packfs's own decoding".into());
        }
        lines
    }

    fn looked_words(&self) -> String {
        let looked = &self.looked;
        if looked.whole {
            let unit = Unit::of_bytes(looked.bytes);
            let all = unit.figure(looked.bytes as f64, 0);
            return format!("Measured: every candidate packed all {all} {}.", unit.name);
        }
        let unit = Unit::of_bytes(looked.sampled);
        format!(
            "Measured: every candidate packed {} of {} {} in {} samples (seed {}); each layout was packed as a whole once, with zstd:3.",
            unit.figure(looked.sampled as f64, 0),
            unit.figure(looked.bytes as f64, 0),
            unit.name,
            looked.samples,
            looked.seed
        )
    }
}

/// The kernel, and where it was taken from if nobody named it.
pub(super) fn kernel_words(kernel: &str, is_assumed: bool) -> String {
    if is_assumed {
        format!(
            "Linux {kernel}, assumed as it runs here; --kernel VERSION names the one that is to mount the image"
        )
    } else {
        format!("Linux {kernel}")
    }
}

fn size_words(size: &Size) -> String {
    let unit = Unit::of_bytes(size.bytes);
    let len = format!("{} {}", unit.figure(size.bytes as f64, 1), unit.name);
    if size.error > 0.0 {
        format!("{len}, +- {:.1} %: forecast", size.error * 100.0)
    } else {
        format!("{len}: measured, before times and owners that options change")
    }
}

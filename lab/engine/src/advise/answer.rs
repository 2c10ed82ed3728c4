//! The answer, as data and in words.

use super::Want;
use super::candidates::LeftOut;
use super::check::{self, Truth};
use super::row::Row;
use crate::report::{Style, Terminal, Text, as_figure, figure};
use crate::results::{Cell, Table, Unit};
use serde::Serialize;

/// Extent of the tree and of its samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Extent {
    /// Bytes of all files.
    pub bytes: u64,
    /// Regular files.
    pub files: u64,
    /// Bytes of files that every candidate packed.
    pub sampled: u64,
    /// Number of samples.
    pub samples: usize,
    /// True if these are the whole tree.
    pub whole: bool,
    /// Seed of the choices.
    pub seed: u64,
}

/// The processor that measured, which is assumed to read the image, too.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Processor {
    /// Its own name for itself; `unknown` without one.
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
    /// Purpose of the image.
    pub want: Want,
    /// The device's name.
    pub device: String,
    /// The device's description.
    pub device_title: String,
    /// The kernel it is for.
    pub kernel: String,
    /// True if the user named no kernel: it is the one that runs here.
    pub kernel_assumed: bool,
    /// The processor that times of reading and building are of.
    pub processor: Processor,
    /// The workload that reading times are of.
    pub workload: String,
    /// The measured parts that forecasts rest on.
    pub looked: Extent,
    /// Every candidate, from the recommended one on.
    pub rows: Vec<Row>,
    /// Reasons for the recommendation.
    pub reasons: Vec<String>,
    /// Candidates that were not considered.
    pub left_out: Vec<LeftOut>,
    /// Notes on the figures.
    pub notes: Vec<String>,
    /// Measured truth of the first two, if the question includes a check.
    pub truth: Vec<Truth>,
    /// Seconds that answering took.
    pub took: f64,
}

impl Answer {
    /// Returns the answer for people.
    pub fn text(&self, terminal: Terminal) -> String {
        // Nothing wraps: the command is one line, and so is each fact.
        let mut text = Text::new(Style::Terminal(Terminal { width: None, ..terminal }));
        text.words(&self.command);
        text.words("");
        self.facts().iter().for_each(|(label, what)| text.words(&format!("  {label:7} {what}")));
        text.words("");
        self.reasons.iter().for_each(|reason| text.words(reason));
        text.words("");
        text.table_within(&self.table(), terminal.width);
        text.words("* nothing listed is both smaller and read sooner");
        if self.rows.iter().any(|row| !row.kernel_measured) {
            text.words("~ what decoding takes the kernel is told from packfs's own decoding");
        }
        text.words("");
        text.words(&self.looked.words());
        self.notes.iter().for_each(|note| text.words(note));
        self.left_out.iter().for_each(|it| text.words(&format!("Left out: {}: {}", it.candidate, it.reason)));
        if !self.truth.is_empty() {
            text.words("");
            text.words(&format!("Forecast against truth on {}", self.device));
            text.table_within(&check::table(&self.truth), terminal.width);
        }
        for one in &self.truth {
            if let Some(why) = &one.not_read {
                text.words(&format!("{}: not read: {why}", one.candidate));
            }
        }
        text.words(&format!("Answered in {}.", figure(self.took, Unit::Seconds)));
        text.text
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let Some(best) = self.rows.first() else { return Vec::new() };
        let seconds = |seconds: f64| figure(seconds, Unit::Seconds);
        let how = match best.size.error {
            error if error > 0.0 => format!(", +- {}: forecast", figure(error, Unit::Percent)),
            _ => ": measured, before times and owners that options change".into(),
        };
        let assumed = if self.kernel_assumed {
            ", assumed as it runs here; --kernel VERSION names the one that is to mount the image"
        } else {
            ""
        };
        let Processor { name, count, jobs } = &self.processor;
        let rate = best.decodes_mib_per_second as u64;
        vec![
            ("image", format!("{}{how}", length(best.size.bytes))),
            (
                "read",
                format!("{} on {} ({}): forecast", seconds(best.read.seconds), self.device, self.workload),
            ),
            (
                "build",
                format!(
                    "{} of processor time, {} here: forecast",
                    seconds(best.build.cpu),
                    seconds(best.build.wall)
                ),
            ),
            ("kernel", format!("Linux {}{assumed}", self.kernel)),
            (
                "CPU",
                format!(
                    "this machine's is assumed: {name}, {count} at once, {jobs} of them packing; it decodes {rate} MiB/s of this image"
                ),
            ),
        ]
    }

    fn table(&self) -> Table {
        let rows = self.rows.iter().map(|row| {
            let marks = [(row.on_front, "*"), (!row.kernel_measured, "~")];
            let marks = marks.iter().filter_map(|(is_set, mark)| is_set.then_some(*mark));
            let error = row.size.error;
            vec![
                Cell::Text(marks.collect()),
                Cell::Text(row.to_string()),
                Cell::exact(as_figure(row.size.bytes)),
                if error > 0.0 { Cell::exact(error) } else { Cell::Text("exact".into()) },
                Cell::exact(row.read.seconds),
                Cell::exact(row.build.cpu),
                Cell::exact(row.decodes_mib_per_second * f64::from(1 << 20)),
            ]
        });
        let columns = [
            ("", Unit::Text),
            ("candidate", Unit::Text),
            ("size", Unit::Bytes),
            ("+-", Unit::Percent),
            ("read", Unit::Seconds),
            ("build CPU", Unit::Seconds),
            ("decode", Unit::BytesPerSecond),
        ];
        Table::new("", "", &columns, rows.collect())
    }
}

impl Extent {
    fn words(&self) -> String {
        let all = length(self.bytes);
        if self.whole {
            return format!("Measured: every candidate packed all {all}.");
        }
        let Self { sampled, samples, seed, .. } = self;
        format!(
            "Measured: every candidate packed {} of {all} in {samples} samples (seed {seed}); each layout was packed as a whole once, with zstd:3.",
            length(*sampled)
        )
    }
}

fn length(bytes: u64) -> String {
    figure(as_figure(bytes), Unit::Bytes)
}

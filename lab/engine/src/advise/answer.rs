//! The answer, as data and in words.

use super::Want;
use super::candidates::LeftOut;
use super::check::{self, Truth};
use super::row::Row;
use crate::report::{Terminal, as_figure, environment, figure, table_lines};
use crate::results::{Cell, Table, Unit};
use minijinja::value::{Serde, Value};
use packfs::{Error, Result, printable};
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

/// An answer with its tables, for the template.
#[derive(Serialize)]
struct Shown<'a> {
    answer: &'a Answer,
    candidates: Value,
    truth: Value,
}

impl Answer {
    /// Returns the answer for people.
    ///
    /// Errors: none that an answer can cause.
    pub fn text(&self, terminal: Terminal) -> Result<String> {
        let mut words = environment();
        words.add_filter("seconds", |seconds: f64| figure(seconds, Unit::Seconds));
        words.add_filter("length", |bytes: u64| figure(as_figure(bytes), Unit::Bytes));
        words.add_filter("percent", |share: f64| figure(share, Unit::Percent));
        // Tables hold colors, and their cells are escaped; everything else is escaped here.
        words.set_formatter(|out, _, value| match value.as_str().filter(|_| !value.is_safe()) {
            Some(text) => Ok(out.write_str(&printable(text))?),
            None => Ok(write!(out, "{value}")?),
        });
        let lines = |table: &Table| Value::from_safe_string(table_lines(table, terminal).join("\n"));
        let truth = lines(&check::table(&self.truth));
        let shown = Shown { answer: self, candidates: lines(&self.table()), truth };
        let text = words.render_str(include_str!("answer.txt"), Serde(shown));
        text.map_err(|error| Error::failed(format!("the answer cannot be written: {error}")))
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

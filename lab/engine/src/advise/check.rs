//! The forecast against the truth: makes the first two images of the whole tree, and has the kernel
//! read them on the device.

use super::bench::Bench;
use super::candidates::Candidate;
use super::mounted::Mounted;
use super::row::Row;
use super::scratch::remove;
use crate::report::as_figure;
use crate::results::{Cell, Spread, Table, Unit};
use packfs::{Error, ErrorKind, Progress, Result};
use packfs_device::{Backing, Simulated};
use serde::Serialize;
use std::path::Path;

/// Runs of the workload; the middle one counts.
const RUNS: usize = 3;
/// Number of candidates that are made.
const CHECKED: usize = 2;

/// Forecast and truth of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Truth {
    /// The candidate.
    pub candidate: String,
    /// Bytes: forecast.
    pub size_forecast: u64,
    /// Bytes: the image.
    pub size: u64,
    /// Seconds to read the workload: forecast.
    pub read_forecast: f64,
    /// Seconds that it took, run by run; none if it could not be read on the device.
    pub read: Vec<f64>,
    /// Why it was not read.
    pub not_read: Option<String>,
    /// Requests to the device and bytes: forecast.
    pub requests_forecast: (u64, u64),
    /// Requests and bytes that came, of one run.
    pub requests: (u64, u64),
    /// Seconds by which the simulation was behind its model, of all runs together: a busy machine,
    /// or one that is too slow for it.
    pub late: f64,
    /// Seconds of processors to make it: forecast.
    pub build_forecast: f64,
    /// Seconds that it took.
    pub build: f64,
}

impl Truth {
    /// Returns the error of the size, as a share of the truth.
    pub fn size_error(&self) -> f64 {
        self.size_forecast as f64 / self.size.max(1) as f64 - 1.0
    }

    /// Returns the error of the reading time; none if it was not read.
    pub fn read_error(&self) -> Option<f64> {
        self.middle().map(|middle| self.read_forecast / middle.max(1e-9) - 1.0)
    }

    fn middle(&self) -> Option<f64> {
        Spread::of(self.read.iter().copied()).map(|runs| runs.median)
    }
}

/// Makes the first of `rows` and reads them.
///
/// Errors: those of making an image, `Cancelled`. That nothing can be mounted here is part of the
/// answer.
pub(super) fn check(bench: &Bench<'_>, rows: &[Row], progress: &dyn Progress) -> Result<Vec<Truth>> {
    let mut found = Vec::new();
    for row in rows.iter().take(CHECKED) {
        let image = bench.scratch.path("checked");
        let packed = bench.pack(&bench.all, &row.candidate, bench.trace, &image, progress)?;
        let read = on_device(bench, &row.candidate, &image, progress);
        remove(&image)?;
        let (runs, not_read) = match read {
            Ok(runs) => (runs, None),
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
            Err(error) => (Runs::default(), Some(error.to_string())),
        };
        let Runs { read, requests, late } = runs;
        found.push(Truth {
            candidate: row.to_string(),
            size_forecast: row.size.bytes,
            size: packed.image_len,
            read_forecast: row.read.seconds,
            read,
            not_read,
            requests_forecast: (row.read.requests, row.read.bytes),
            requests,
            late,
            build_forecast: row.build.cpu,
            build: packed.cpu,
        });
    }
    Ok(found)
}

#[derive(Default)]
struct Runs {
    /// Seconds of each run.
    read: Vec<f64>,
    /// Requests and bytes of the last.
    requests: (u64, u64),
    late: f64,
}

/// Reads the workload by the kernel's driver from the device, each time mounted anew, so that
/// nothing is known.
fn on_device(
    bench: &Bench<'_>,
    candidate: &Candidate,
    image: &Path,
    progress: &dyn Progress,
) -> Result<Runs> {
    // A trace is read from the whole tree, and all it lists is there under its own name.
    if bench.times > 1.0 && bench.trace.is_none() {
        return Err(Error::failed(
            "the files to read were picked from a part of the tree, and some are pieces of files",
        ));
    }
    let mut runs = Runs::default();
    for _ in 0..RUNS {
        // A device of its own for each run: the cache of a block device outlives a mount.
        let device = Simulated::attach(&bench.question.device, Backing::Image(image))?;
        let mounted = Mounted::new(candidate.layout.format, device.path(), bench.scratch.dir())?;
        // What mounting asks for is no part of the workload.
        let before = device.statistics();
        runs.read.push(mounted.read(&bench.files, progress)?);
        drop(mounted);
        let after = device.statistics();
        runs.requests = (after.reads - before.reads, after.read_bytes - before.read_bytes);
        runs.late += (after.lateness - before.lateness) as f64 / 1e9;
    }
    Ok(runs)
}

pub(super) fn table(truth: &[Truth]) -> Table {
    let columns = [
        ("candidate", Unit::Text),
        ("size", Unit::Bytes),
        ("truth", Unit::Bytes),
        ("error", Unit::Percent),
        ("read", Unit::Seconds),
        ("truth", Unit::Seconds),
        ("error", Unit::Percent),
        ("requests", Unit::Count),
        ("truth", Unit::Count),
        ("bytes read", Unit::Bytes),
        ("truth", Unit::Bytes),
        ("late", Unit::Seconds),
        ("build CPU", Unit::Seconds),
        ("truth", Unit::Seconds),
    ];
    let count = |number: u64| Cell::exact(as_figure(number));
    let rows = truth.iter().map(|one| {
        vec![
            Cell::Text(one.candidate.clone()),
            count(one.size_forecast),
            count(one.size),
            Cell::exact(one.size_error()),
            Cell::exact(one.read_forecast),
            one.middle().map_or(Cell::Empty, Cell::exact),
            one.read_error().map_or(Cell::Empty, Cell::exact),
            count(one.requests_forecast.0),
            count(one.requests.0),
            count(one.requests_forecast.1),
            count(one.requests.1),
            Cell::exact(one.late / one.read.len().max(1) as f64),
            Cell::exact(one.build_forecast),
            Cell::exact(one.build),
        ]
    });
    Table::new("", "", &columns, rows.collect())
}

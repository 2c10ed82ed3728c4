//! True if a simulated device is what it says it is: measured as a benchmark of disks does, held
//! against its stated figures.
//!
//! Everything is read and written directly, so the way is the one that a file system's requests
//! take: block layer, loop device, FUSE, model. A machine that is too slow or busy shows here as
//! figures outside their tolerance.

mod expected;
mod measure;

use crate::{Backing, DeviceSpec, Nanos, Simulated, clock};
use expected::Expected;
use measure::{Pattern, Span};
use packfs_core::Result;

const MIB: u64 = 1 << 20;
/// Most that sequential rates may differ by, and random ones, as a part.
const RATE_TOLERANCE: f64 = 0.05;
const RANDOM_TOLERANCE: f64 = 0.1;
/// Requests at a time of sequential rows: what a reader gets whose kernel reads ahead.
const SEQUENTIAL_DEPTH: usize = 4;
/// Requests at a time of deep random rows.
const DEPTH: usize = 32;

/// Duration of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Seconds a device.
    Quick,
    /// Half a minute a device, a minute if it is slow.
    Full,
}

impl Effort {
    /// For one row: so long at least, and so many requests.
    fn span(self) -> Span {
        match self {
            Effort::Quick => Span { time: 400_000_000, requests: 24 },
            Effort::Full => Span { time: 3_000_000_000, requests: 120 },
        }
    }
}

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Millions of bytes per second.
    MegabytesPerSecond,
    /// Requests per second.
    Iops,
    /// Milliseconds a request.
    Milliseconds,
}

impl Unit {
    /// Returns the printed word.
    pub fn word(self) -> &'static str {
        match self {
            Unit::MegabytesPerSecond => "MB/s",
            Unit::Iops => "IOPS",
            Unit::Milliseconds => "ms",
        }
    }
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The measured quantity.
    pub what: &'static str,
    /// Unit of the figures.
    pub unit: Unit,
    /// Expected figure; `None` where nothing follows from the description.
    pub stated: Option<f64>,
    /// Measured figure.
    pub measured: f64,
    /// Most that the two may differ by, as a part of the expected one.
    pub tolerance: f64,
    /// Part of the requests that was answered late: the machine did not keep up.
    pub late: f64,
}

impl Row {
    /// By which part of what is stated the measurement is more, or less.
    pub fn error(&self) -> Option<f64> {
        Some(self.measured / self.stated? - 1.0)
    }

    /// True if it is within its tolerance; what states nothing is.
    pub fn is_met(&self) -> bool {
        self.error().is_none_or(|error| error.abs() <= self.tolerance)
    }
}

/// A device, measured.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The figures that it was made of.
    pub spec: DeviceSpec,
    /// The figures that it has.
    pub rows: Vec<Row>,
    /// Time of the way of a request in nanoseconds: of any, and of each byte.
    pub path_cost: (Nanos, f64),
    /// Attributes of the queue that the kernel did not take.
    pub refused: Vec<String>,
    /// Time of the check, in nanoseconds.
    pub time: Nanos,
}

impl Checked {
    /// True if every row is within its tolerance.
    pub fn is_met(&self) -> bool {
        self.rows.iter().all(Row::is_met)
    }
}

/// Measures a device of these figures. Needs root.
///
/// Errors: those of [`Simulated::attach`]; `Io` if it cannot be read or written.
pub fn check(spec: &DeviceSpec, effort: Effort) -> Result<Checked> {
    let start = clock::now();
    let device = Simulated::attach(spec, Backing::Blank(spec.medium.capacity))?;
    let mut bench = Bench { device: &device, span: effort.span(), rows: Vec::new() };
    bench.run()?;
    let rows = bench.rows;
    let (path_cost, refused) = (device.path_cost(), device.refused_attributes().to_vec());
    device.detach()?;
    Ok(Checked { spec: spec.clone(), rows, path_cost, refused, time: clock::now() - start })
}

struct Bench<'a> {
    device: &'a Simulated,
    span: Span,
    rows: Vec<Row>,
}

impl Bench<'_> {
    fn run(&mut self) -> Result<()> {
        let spec = self.device.spec();
        let expected = Expected::of(spec);
        let capacity = spec.medium.capacity;
        let is_graded = spec.read.rate != spec.read.rate_at_end();
        let reads = |from: u64, to: u64| Pattern::sequential(from..to, false, SEQUENTIAL_DEPTH);
        let megabytes = Unit::MegabytesPerSecond;
        self.rate("sequential read", megabytes, Some(expected.read_rate(0.0)), &reads(0, capacity))?;
        if is_graded {
            let from = (capacity - capacity / 20) / MIB * MIB;
            let what = "sequential read at the end";
            let stated = expected.read_rate(from as f64 / capacity as f64);
            self.rate(what, megabytes, Some(stated), &reads(from, capacity))?;
        }
        let random = |is_write, depth| Pattern::random(0..capacity, is_write, depth);
        let one = expected.read_iops(1);
        self.rate("random 4K read, 1 at a time", Unit::Iops, one, &random(false, 1))?;
        if spec.queue.depth > 1 {
            let many = expected.read_iops(DEPTH);
            self.rate("random 4K read, 32 at a time", Unit::Iops, many, &random(false, DEPTH))?;
        }
        if let Some(seek) = &spec.seek {
            let step = (4 * spec.read.buffer).max(MIB) / MIB * MIB;
            let short = expected.seek_and_read(seek.time(step as f64 / capacity as f64));
            self.time("short seek and 4K read", short, &Pattern::steps(capacity, step))?;
            let full = expected.seek_and_read(seek.full_stroke);
            self.time("seek from end to end and 4K read", full, &Pattern::ends(capacity))?;
        }
        if spec.is_writable() {
            self.writes(&expected)?;
        }
        Ok(())
    }

    fn writes(&mut self, expected: &Expected<'_>) -> Result<()> {
        let spec = self.device.spec();
        // What is written takes memory: a part of the device stands for all of it, unless way has
        // to be made over it.
        let region = 0..spec.medium.capacity.min(256 * MIB);
        let writes = Pattern::sequential(region.clone(), true, SEQUENTIAL_DEPTH);
        let (cache, rate) = (spec.write_cache(), expected.write_rate(0.0));
        if cache > 0 {
            // A cache that is full shows what is behind it.
            measure::fill(self.device, &writes, 2 * cache)?;
        }
        self.rate("sequential write", Unit::MegabytesPerSecond, rate, &writes)?;
        let place = if spec.seek.is_some() { 0..spec.medium.capacity } else { region };
        for (what, depth) in [("random 4K write, 1 at a time", 1), ("random 4K write, 32 at a time", DEPTH)] {
            if depth == 1 || spec.queue.depth > 1 {
                let pattern = Pattern::random(place.clone(), true, depth);
                if cache > 0 {
                    measure::settle(self.device)?;
                }
                self.rate(what, Unit::Iops, expected.write_iops(depth), &pattern)?;
            }
        }
        Ok(())
    }

    fn rate(&mut self, what: &'static str, unit: Unit, stated: Option<f64>, pattern: &Pattern) -> Result<()> {
        let span = match unit {
            // Long requests: fewer show as much.
            Unit::MegabytesPerSecond => Span { requests: self.span.requests / 3, ..self.span },
            _ => self.span,
        };
        let found = measure::run(self.device, pattern, span)?;
        let (measured, stated, tolerance) = match unit {
            Unit::MegabytesPerSecond => {
                (found.bytes_per_second() / 1e6, stated.map(|rate| rate / 1e6), RATE_TOLERANCE)
            }
            _ => (found.per_second(), stated, RANDOM_TOLERANCE),
        };
        self.rows.push(Row { what, unit, stated, measured, tolerance, late: found.late });
        Ok(())
    }

    fn time(&mut self, what: &'static str, stated: f64, pattern: &Pattern) -> Result<()> {
        let found = measure::run(self.device, pattern, self.span)?;
        self.rows.push(Row {
            what,
            unit: Unit::Milliseconds,
            stated: Some(stated / 1e6),
            measured: 1e3 / found.per_second(),
            tolerance: RANDOM_TOLERANCE,
            late: found.late,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(stated: Option<f64>, measured: f64) -> Row {
        Row { what: "", unit: Unit::Iops, stated, measured, tolerance: 0.1, late: 0.0 }
    }

    #[test]
    fn a_row_is_met_within_its_tolerance() {
        assert!(row(Some(100.0), 109.0).is_met() && row(Some(100.0), 91.0).is_met());
        assert!(!row(Some(100.0), 111.0).is_met() && !row(Some(100.0), 89.0).is_met());
        assert!(row(None, 5.0).is_met() && row(None, 5.0).error().is_none());
    }
}

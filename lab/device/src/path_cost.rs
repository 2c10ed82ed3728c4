//! Time of the way through the kernel to the simulation and back, which is part of the model's
//! time.

use crate::aligned::Aligned;
use crate::model::{Operation, Request};
use crate::{Nanos, clock};
use packfs_core::{Result, ResultExt};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const SHORT: usize = 4096;
const LONG: usize = 256 << 10;
/// Reads of each length.
const READS: usize = 33;
/// More is another program's doing.
const BASE_MAX: Nanos = 300_000;
/// Nanoseconds for a byte; as slow as 250 MB/s.
const EACH_MAX: f64 = 4.0;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PathCost {
    base: Nanos,
    each: f64,
}

impl PathCost {
    /// Measures it, with reads of a device that answers at once.
    ///
    /// Errors: `Io` if the device cannot be read.
    pub(crate) fn measure(device: &Path, len: u64) -> Result<PathCost> {
        let file = open_direct(device, false)?;
        let short = typical(&file, device, SHORT, len)?;
        let base = short.min(BASE_MAX);
        if len < LONG as u64 {
            return Ok(PathCost { base, each: 0.0 });
        }
        let long = typical(&file, device, LONG, len)?;
        let each = long.saturating_sub(short) as f64 / (LONG - SHORT) as f64;
        Ok(PathCost { base, each: each.min(EACH_MAX) })
    }

    /// Returns the time before the model hears of a request, and after it has answered.
    pub(crate) fn of(&self, request: &Request) -> (Nanos, Nanos) {
        let half = self.base / 2;
        let bytes = (self.each * request.len as f64) as Nanos;
        match request.operation {
            Operation::Read => (half, half + bytes),
            Operation::Write => (half + bytes, half),
            Operation::Flush | Operation::Discard => (half, half),
        }
    }

    /// Returns the time beside the model's, in nanoseconds: of any request, and of each byte.
    pub(crate) fn parts(&self) -> (Nanos, f64) {
        (self.base, self.each)
    }
}

/// The time of such a read of which a third are faster: undisturbed by what else runs.
fn typical(file: &File, device: &Path, len: usize, end: u64) -> Result<Nanos> {
    let mut room = Aligned::new(len);
    let places = (end / len as u64).max(1);
    let mut times = Vec::with_capacity(READS);
    for index in 0..READS as u64 {
        let offset = index * 7 % places * len as u64;
        let start = clock::now();
        file.read_exact_at(room.as_mut(), offset).or_io(|| format!("cannot read {device:?}"))?;
        times.push(clock::now() - start);
    }
    times.sort_unstable();
    Ok(times[READS / 3])
}

pub(crate) fn open_direct(device: &Path, writable: bool) -> Result<File> {
    let access = if writable { OFlags::RDWR } else { OFlags::RDONLY };
    let file = rustix::fs::open(device, access | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty());
    Ok(File::from(file.or_io(|| format!("cannot open {device:?}"))?))
}

//! Reading and writing a device directly, so many requests at a time.

use crate::aligned::Aligned;
use crate::path_cost::open_direct;
use crate::{Nanos, Simulated, clock};
use packfs_core::{Error, Result, ResultExt};
use packfs_host::mix;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const BLOCK: u64 = 4096;
const MIB: u64 = 1 << 20;

/// For how long something is measured: both hold.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) time: Nanos,
    pub(super) requests: u64,
}

pub(super) struct Pattern {
    place: Place,
    is_write: bool,
    depth: usize,
    len: u64,
}

enum Place {
    /// One after the other, from the beginning again at the end.
    Sequential(Range<u64>),
    /// Anywhere.
    Random(Range<u64>),
    /// Forward by so much, from the beginning again at the end.
    Steps { capacity: u64, step: u64 },
    /// At the beginning and at the end in turns, never twice in the same place.
    Ends { capacity: u64 },
}

impl Pattern {
    pub(super) fn sequential(place: Range<u64>, is_write: bool, depth: usize) -> Self {
        Pattern { place: Place::Sequential(place), is_write, depth, len: MIB }
    }

    pub(super) fn random(place: Range<u64>, is_write: bool, depth: usize) -> Self {
        Pattern { place: Place::Random(place), is_write, depth, len: BLOCK }
    }

    pub(super) fn steps(capacity: u64, step: u64) -> Self {
        Pattern { place: Place::Steps { capacity, step }, is_write: false, depth: 1, len: BLOCK }
    }

    pub(super) fn ends(capacity: u64) -> Self {
        Pattern { place: Place::Ends { capacity }, is_write: false, depth: 1, len: BLOCK }
    }

    /// Returns the place of the request of this number, in bytes.
    fn offset(&self, index: u64) -> u64 {
        match &self.place {
            Place::Sequential(range) => {
                let count = ((range.end - range.start) / self.len).max(1);
                range.start + index % count * self.len
            }
            Place::Random(range) => {
                let count = ((range.end - range.start) / self.len).max(1);
                range.start + mix(index) % count * self.len
            }
            Place::Steps { capacity, step } => index % (capacity / step).max(1) * step,
            Place::Ends { capacity } => {
                let inwards = index / 2 % 64 * 16 * BLOCK;
                if index.is_multiple_of(2) { inwards } else { capacity - inwards - BLOCK }
            }
        }
    }
}

pub(super) struct Found {
    requests: u64,
    bytes: u64,
    time: Nanos,
    pub(super) late: f64,
}

impl Found {
    pub(super) fn per_second(&self) -> f64 {
        self.requests as f64 * 1e9 / self.time.max(1) as f64
    }

    pub(super) fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.time.max(1) as f64
    }
}

/// Sends requests for that long, after one that brings the device to its place; what came back
/// until the last of them had.
pub(super) fn run(device: &Simulated, pattern: &Pattern, span: Span) -> Result<Found> {
    send(device, pattern, 0, |index| index < 1)?;
    let before = device.statistics();
    let start = clock::now();
    let requests =
        send(device, pattern, 1, |index| clock::now() - start < span.time || index <= span.requests)?;
    let time = clock::now() - start;
    let after = device.statistics();
    let late = after.late - before.late;
    let asked = (after.requests() - before.requests()).max(1);
    Ok(Found { requests, bytes: requests * pattern.len, time, late: late as f64 / asked as f64 })
}

/// Sends so many bytes of requests.
pub(super) fn fill(device: &Simulated, pattern: &Pattern, bytes: u64) -> Result<()> {
    let requests = bytes.div_ceil(pattern.len);
    send(device, pattern, 0, |index| index < requests).map(drop)
}

/// Waits until a device has written what it holds.
pub(super) fn settle(device: &Simulated) -> Result<()> {
    let file = open_direct(device.path(), true)?;
    file.sync_all().or_io(|| format!("cannot flush {:?}", device.path()))
}

/// Sends requests from the one of number `first` on, while `goes_on` says so of their number; how
/// many.
fn send(
    device: &Simulated,
    pattern: &Pattern,
    first: u64,
    goes_on: impl Fn(u64) -> bool + Sync,
) -> Result<u64> {
    let file = open_direct(device.path(), pattern.is_write)?;
    let next = AtomicU64::new(first);
    let failed: Mutex<Option<std::io::Error>> = Mutex::new(None);
    let work = || {
        let mut room = Aligned::new(pattern.len as usize);
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if !goes_on(index) {
                next.fetch_sub(1, Ordering::Relaxed);
                return;
            }
            if let Err(error) = one(&file, pattern, index, room.as_mut()) {
                let mut failed = failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                failed.get_or_insert(error);
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..pattern.depth {
            scope.spawn(work);
        }
        work();
    });
    let failed = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    match failed {
        Some(error) => Err(Error::io(format!("cannot read or write {:?}", device.path()), error)),
        None => Ok(next.into_inner() - first),
    }
}

fn one(file: &File, pattern: &Pattern, index: u64, room: &mut [u8]) -> std::io::Result<()> {
    let offset = pattern.offset(index);
    if pattern.is_write { file.write_all_at(room, offset) } else { file.read_exact_at(room, offset) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stay_on_the_device() {
        let capacity = 40 * MIB;
        let patterns = [
            Pattern::sequential(0..capacity, false, 1),
            Pattern::sequential(36 * MIB..capacity, false, 1),
            Pattern::random(0..capacity, false, 1),
            Pattern::steps(capacity, 8 * MIB),
            Pattern::ends(capacity),
        ];
        for pattern in patterns {
            for index in 0..1000 {
                let offset = pattern.offset(index);
                assert!(offset + pattern.len <= capacity && offset % BLOCK == 0, "{offset}");
            }
        }
        let ends = Pattern::ends(capacity);
        assert!(ends.offset(6) < MIB && ends.offset(7) > 39 * MIB);
    }
}

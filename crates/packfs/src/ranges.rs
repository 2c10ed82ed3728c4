//! Ranges of many files at once, decoded on all threads in the order of the image.
//!
//! Whole files that the cache cannot hold are read by the engine's pass in disk order, each block
//! once. All else goes through the cache, so that later calls find what is decoded.

use crate::Reader;
use packfs_core::{Error, Limit, Progress, Result};
use packfs_format::{ExtentFrom, InodeId};
use packfs_read::{PieceSink, Wanted};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Bytes of whole files beyond which the cache is left alone.
const CACHED_LEN_MAX: u64 = 16 << 20;
/// Bytes that are worth a thread.
const LEN_A_THREAD: u64 = 256 << 10;
/// Ranges whose places a thread looks up at a time.
const LOOK_UPS: usize = 64;
/// Ranges that a thread reads at a time: neighbors share blocks.
const READS: usize = 8;

/// A range of a file to read.
#[derive(Clone, Debug)]
pub struct FileRange {
    file: Wanted,
    range: Range<u64>,
}

impl FileRange {
    /// Returns a range of a file, cut to its length.
    pub fn new(file: Wanted, range: Range<u64>) -> Self {
        FileRange { file, range: range.start.min(file.len)..range.end.min(file.len) }
    }

    /// Returns the range of no file, which nothing is read for.
    pub fn empty() -> Self {
        FileRange::new(Wanted { id: InodeId(0), len: 0 }, 0..0)
    }

    /// Returns the file.
    pub fn file(&self) -> Wanted {
        self.file
    }

    /// Returns the length of the range in bytes.
    pub fn bytes(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    fn is_whole(&self) -> bool {
        self.range == (0..self.file.len)
    }
}

/// Memory for one range. Threads that fill parts of it wait for each other.
pub trait RangeTarget: Sync {
    /// Copies bytes to an offset, and leaves out what does not fit. Holes are not put.
    fn put(&self, offset: u64, bytes: &[u8]);

    /// Calls `fill` with all of it.
    fn with(&self, fill: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()>;
}

/// Memory that is zero before, so that holes are.
impl RangeTarget for Mutex<&mut [u8]> {
    fn put(&self, offset: u64, bytes: &[u8]) {
        let mut target = self.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(target) = usize::try_from(offset).ok().and_then(|start| target.get_mut(start..)) {
            let len = target.len().min(bytes.len());
            target[..len].copy_from_slice(&bytes[..len]);
        }
    }

    fn with(&self, fill: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()> {
        fill(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Calls `work` for the numbers `0..count`, in chunks, on up to `threads` threads, this one
/// included.
///
/// Errors: `Cancelled`.
pub fn spread(
    count: usize,
    chunk: usize,
    threads: usize,
    progress: &dyn Progress,
    work: &(dyn Fn(usize) + Sync),
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let chunk = chunk.max(1);
    let share = || {
        loop {
            let start = next.fetch_add(chunk, Ordering::Relaxed);
            if start >= count || progress.cancelled() {
                return;
            }
            (start..count.min(start + chunk)).for_each(work);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count.div_ceil(chunk)) {
            // If threads are short, fewer do the same.
            if std::thread::Builder::new().spawn_scoped(scope, share).is_err() {
                break;
            }
        }
        share();
    });
    if progress.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
}

/// Many ranges at once.
impl Reader {
    /// Returns the offset in the image of the first byte of each range, or of its block; 0 for
    /// holes, and for what cannot be found.
    ///
    /// Errors: `Cancelled`.
    pub fn positions(&self, ranges: &[FileRange], progress: &dyn Progress) -> Result<Vec<u64>> {
        Ok(self.places(ranges, progress)?.into_iter().map(|(offset, _)| offset).collect())
    }

    /// Returns the block of the first byte of each range, and its place in the block.
    fn places(&self, ranges: &[FileRange], progress: &dyn Progress) -> Result<Vec<(u64, u32)>> {
        let places: Vec<OnceLock<(u64, u32)>> = ranges.iter().map(|_| OnceLock::new()).collect();
        let one = |index: usize| {
            let FileRange { file, range } = &ranges[index];
            let first = range.start..range.end.min(range.start.saturating_add(1));
            // A file that is damaged is the read's to report.
            let _ = self.volume().extents(file.id, first, &mut |extent| {
                let _ = places[index].set(match extent.from {
                    ExtentFrom::Hole => (0, 0),
                    ExtentFrom::Stored(at) => (at, 0),
                    ExtentFrom::Block { block, start } => (block.offset, start),
                });
                ControlFlow::Break(())
            });
        };
        spread(ranges.len(), LOOK_UPS, self.engine().jobs(), progress, &one)?;
        Ok(places.into_iter().map(|place| place.into_inner().unwrap_or_default()).collect())
    }

    /// Refuses files that are longer together than the limits allow, or whose data is missing.
    ///
    /// Errors: `Limit`, and those of the format.
    pub fn check_len(&self, files: &[Wanted]) -> Result<()> {
        let total = files.iter().fold(0_u64, |total, file| total.saturating_add(file.len));
        self.limits().check("files to read", Limit::Bytes, total)?;
        self.engine().check_data(files)
    }

    /// Reads ranges into targets of their lengths, on all threads. Returns the errors of single
    /// ranges, by number.
    ///
    /// Errors: `Cancelled`; `Io` of the image as a whole.
    pub fn read_ranges<T: RangeTarget>(
        &self,
        ranges: &[FileRange],
        targets: &[T],
        progress: &dyn Progress,
    ) -> Result<Vec<(usize, Error)>> {
        let total = ranges.iter().fold(0_u64, |total, range| total.saturating_add(range.bytes()));
        let failed = Mutex::new(Vec::new());
        let fails = |index, error| failed.lock().unwrap_or_else(PoisonError::into_inner).push((index, error));
        if total > CACHED_LEN_MAX && ranges.iter().all(FileRange::is_whole) {
            let wanted: Vec<Wanted> = ranges.iter().map(|range| range.file).collect();
            let sink = || Ok(Sink { targets, fails: &fails });
            self.engine().in_disk_order(&wanted, progress, &sink)?;
        } else {
            let mut order: Vec<usize> =
                (0..ranges.len()).filter(|&index| ranges[index].bytes() > 0).collect();
            let places = self.places(ranges, progress)?;
            order.sort_by_key(|&index| places[index]);
            let one = |at: usize| {
                let index = order[at];
                let FileRange { file, range } = &ranges[index];
                let Some(target) = targets.get(index) else { return };
                let mut read =
                    |memory: &mut [u8]| self.engine().read_at(file.id, range.start, memory).map(drop);
                if let Err(error) = target.with(&mut read) {
                    fails(index, error);
                }
            };
            let worth = usize::try_from(total / LEN_A_THREAD).unwrap_or(usize::MAX);
            spread(order.len(), READS, self.engine().jobs().min(worth.max(1)), progress, &one)?;
        }
        let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.sort_by_key(|(index, _)| *index);
        Ok(failed)
    }
}

/// Receives the pieces of files in disk order.
struct Sink<'a, T> {
    targets: &'a [T],
    fails: &'a (dyn Fn(usize, Error) + Sync),
}

impl<T: RangeTarget> PieceSink for Sink<'_, T> {
    fn piece(&mut self, file_index: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        if let Some(target) = self.targets.get(file_index) {
            target.put(offset, bytes);
        }
        Ok(())
    }

    fn failed(&mut self, file_index: usize, error: Error) -> Result<()> {
        (self.fails)(file_index, error);
        Ok(())
    }
}

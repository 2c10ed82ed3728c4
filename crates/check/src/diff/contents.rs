//! Compares contents on several threads, and reports results in order.
//!
//! Files are split into parts of up to [`PART_LEN`] that workers take one by one, so a few large
//! files keep them as busy as many small ones. Only the first difference or error of each file is
//! reported, so the result does not depend on the speed of threads.

use super::{Change, Difference};
use packfs_core::{ContentId, ContentReader, Contents, Error, ErrorKind, ImagePath, Progress, Result};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes that a worker takes at a time.
const PART_LEN: u64 = 1 << 20;
/// Bytes of two files that are read at a time.
const STEP_LEN: usize = 128 << 10;
/// Most parts in the queue.
const PARTS_MAX: usize = 8192;
/// Most bytes in queued parts.
const WAITING_LEN_MAX: u64 = 64 << 20;
/// Most files and differences waiting to be reported.
const EVENTS_MAX: usize = 16384;
/// Fewer bytes are not worth starting threads.
const THREADS_LEN_MIN: u64 = 256 << 10;

const SAME: u64 = u64::MAX;

enum Event {
    Found(Difference),
    File(usize),
}

struct Pair {
    path: ImagePath,
    ids: [ContentId; 2],
    first: AtomicU64,
}

struct Part {
    file: usize,
    range: Range<u64>,
}

pub(super) struct Pending<'a> {
    sides: [&'a dyn Contents; 2],
    worker_count: usize,
    progress: &'a dyn Progress,
    events: Vec<Event>,
    files: Vec<Pair>,
    parts: Vec<Part>,
    waiting_len: u64,
    errors: Mutex<HashMap<(usize, u64), Error>>,
}

impl<'a> Pending<'a> {
    pub(super) fn new(sides: [&'a dyn Contents; 2], jobs: usize, progress: &'a dyn Progress) -> Self {
        let worker_count = packfs_core::thread_count(jobs);
        Pending {
            sides,
            worker_count,
            progress,
            events: Vec::new(),
            files: Vec::new(),
            parts: Vec::new(),
            waiting_len: 0,
            errors: Mutex::default(),
        }
    }

    pub(super) fn difference(&mut self, difference: Difference) {
        self.events.push(Event::Found(difference));
    }

    pub(super) fn is_full(&self) -> bool {
        self.events.len() >= EVENTS_MAX
            || self.parts.len() >= PARTS_MAX
            || self.waiting_len >= WAITING_LEN_MAX
    }

    /// Errors: `Cancelled`; other errors are reported in order by [`Pending::finish`].
    pub(super) fn file(&mut self, path: &ImagePath, len: u64, ids: [ContentId; 2]) -> Result<()> {
        let file = self.files.len();
        self.files.push(Pair { path: path.clone(), ids, first: AtomicU64::new(SAME) });
        self.events.push(Event::File(file));
        if len > PART_LEN {
            return self.cut(file, len);
        }
        self.part(file, 0..len);
        Ok(())
    }

    /// Omits common holes.
    fn cut(&mut self, file: usize, len: u64) -> Result<()> {
        let (sides, ids) = (self.sides, self.files[file].ids);
        let mut offset = 0;
        let outcome = Readers::open(sides, ids).map(|mut readers| {
            while let Some(run) = readers.next_data(offset, len)? {
                self.progress.advance(0, run.start - offset, 0);
                offset = run.start;
                while offset < run.end {
                    let end = run.end.min(offset.saturating_add(PART_LEN));
                    self.part(file, offset..end);
                    offset = end;
                    if self.parts.len() >= PARTS_MAX {
                        self.work_off()?;
                    }
                }
                if self.files[file].first.load(Ordering::Relaxed) != SAME {
                    break;
                }
            }
            Ok(())
        });
        match outcome.and_then(|outcome| outcome) {
            Err(error) if error.kind() == ErrorKind::Cancelled => Err(error),
            Err(error) => {
                self.fail(file, offset, error);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn part(&mut self, file: usize, range: Range<u64>) {
        self.waiting_len += range.end - range.start;
        self.parts.push(Part { file, range });
    }

    fn fail(&self, file: usize, offset: u64, error: Error) {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).insert((file, offset), error);
        self.files[file].first.fetch_min(offset, Ordering::Relaxed);
    }

    /// Reports everything in order, up to the first error.
    ///
    /// Errors: the first read error, which names the path; `Cancelled`.
    pub(super) fn finish(&mut self, report: &mut dyn FnMut(Difference)) -> Result<()> {
        self.work_off()?;
        let files = std::mem::take(&mut self.files);
        let mut errors = std::mem::take(self.errors.get_mut().unwrap_or_else(PoisonError::into_inner));
        for event in self.events.drain(..) {
            let file = match event {
                Event::Found(difference) => {
                    report(difference);
                    continue;
                }
                Event::File(file) => file,
            };
            let pair = &files[file];
            let first = pair.first.load(Ordering::Relaxed);
            if let Some(error) = errors.remove(&(file, first)) {
                return Err(error.at(format!("{:?}", pair.path)));
            }
            if first != SAME {
                report(Difference { path: pair.path.clone(), change: Change::Contents(first) });
            }
        }
        Ok(())
    }

    fn work_off(&mut self) -> Result<()> {
        let next = AtomicUsize::new(0);
        let pending = &*self;
        let work = || {
            let mut bufs = [vec![0; STEP_LEN], vec![0; STEP_LEN]];
            while let Some(part) = pending.parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                if pending.progress.cancelled() {
                    return;
                }
                pending.compare(part, &mut bufs);
            }
        };
        let worker_count = if self.waiting_len < THREADS_LEN_MIN { 1 } else { self.worker_count };
        std::thread::scope(|scope| {
            for _ in 1..worker_count.min(self.parts.len()) {
                scope.spawn(work);
            }
            work();
        });
        self.parts.clear();
        self.waiting_len = 0;
        if self.progress.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    fn compare(&self, part: &Part, bufs: &mut [Vec<u8>; 2]) {
        let pair = &self.files[part.file];
        self.progress.advance(0, part.range.end - part.range.start, 0);
        // An earlier difference was found, so this part is irrelevant.
        if pair.first.load(Ordering::Relaxed) < part.range.start {
            return;
        }
        let outcome = Readers::open(self.sides, pair.ids)
            .and_then(|mut readers| readers.first_difference(part.range.clone(), bufs));
        match outcome {
            Ok(None) => {}
            Ok(Some(offset)) => {
                pair.first.fetch_min(offset, Ordering::Relaxed);
            }
            Err(error) => self.fail(part.file, part.range.start, error),
        }
    }
}

struct Readers<'a>([Box<dyn ContentReader + 'a>; 2]);

impl<'a> Readers<'a> {
    fn open(sides: [&'a dyn Contents; 2], ids: [ContentId; 2]) -> Result<Self> {
        Ok(Readers([sides[0].open(ids[0])?, sides[1].open(ids[1])?]))
    }

    fn next_data(&mut self, offset: u64, len: u64) -> Result<Option<Range<u64>>> {
        if offset >= len {
            return Ok(None);
        }
        let [a, b] = &mut self.0;
        let runs = [a.next_data(offset)?, b.next_data(offset)?];
        let first = runs.into_iter().flatten().min_by_key(|run| run.start).filter(|run| run.start < len);
        Ok(first.map(|run| {
            let start = run.start.max(offset);
            start..run.end.clamp(start + 1, len)
        }))
    }

    fn first_difference(&mut self, range: Range<u64>, bufs: &mut [Vec<u8>; 2]) -> Result<Option<u64>> {
        let [a, b] = bufs;
        let mut offset = range.start;
        while offset < range.end {
            let len = (range.end - offset).min(STEP_LEN as u64) as usize;
            let (a, b) = (&mut a[..len], &mut b[..len]);
            self.0[0].read_exact_at(offset, a)?;
            self.0[1].read_exact_at(offset, b)?;
            if a != b {
                let at = a.iter().zip(b.iter()).position(|(a, b)| a != b).unwrap_or(0);
                return Ok(Some(offset + at as u64));
            }
            offset += len as u64;
        }
        Ok(None)
    }
}

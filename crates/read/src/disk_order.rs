//! Reads everything in disk order: each block is read and decoded once, and its pieces are passed
//! to a sink on the same thread.
//!
//! The extents of all files become rows, sorted by the position of their bytes. Workers take runs
//! of adjacent rows, read each run at once, and decode block after block into the same buffer. Very
//! large sets of files are processed in batches, so memory does not grow with the image.

use crate::Wanted;
use crate::block;
use crate::blocks::Blocks;
use crate::engine::ReadEngine;
use crate::piece_sink::PieceSink;
use crate::rows::{At, Row};
use packfs_codec::BlockRef;
use packfs_codec::Decoders;
use packfs_core::{Error, Progress, Result};
use packfs_format::units::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Stored bytes read at a time, unless a block is longer.
const RUN_LEN_MAX: u64 = 1 << 20;
/// Least length of a run, even for few files.
const RUN_LEN_MIN: u64 = 64 << 10;
/// Runs for each worker, so that all finish at about the same time.
const RUNS_PER_WORKER: u64 = 8;
/// Longest gap between blocks that is read instead of skipped.
const GAP_LEN_MAX: u64 = 16 << 10;

impl ReadEngine {
    /// Delivers all data of `files` in disk order, to one sink for each worker.
    ///
    /// Errors: those of sinks, `Corrupt` and `Io` unless a sink accepts them, `Cancelled`.
    pub fn in_disk_order<W: PieceSink>(
        &self,
        files: &[Wanted],
        progress: &dyn Progress,
        new_worker: &(dyn Fn() -> Result<W> + Sync),
    ) -> Result<()> {
        let mut first = new_worker()?;
        let mut at = At::default();
        loop {
            let mut rows = self.rows_from(files, &mut at, &mut first, progress)?;
            self.work_off(&mut rows, progress, &mut first, new_worker)?;
            if at.file >= files.len() {
                return Ok(());
            }
        }
    }

    fn work_off<W: PieceSink>(
        &self,
        rows: &mut Vec<Row>,
        progress: &dyn Progress,
        first: &mut W,
        new_worker: &(dyn Fn() -> Result<W> + Sync),
    ) -> Result<()> {
        // Stable, because threads have sorted what they looked up: runs in order are only merged.
        rows.sort_by(Row::by_place);
        let stored_len: u64 = rows
            .chunk_by(|a, b| a.block.covers(&b.block))
            .fold(0, |len, rows| len.plus(u64::from(rows[0].block.stored_len)));
        let run_len = stored_len / (self.jobs() as u64 * RUNS_PER_WORKER);
        let runs = runs(rows, run_len.clamp(RUN_LEN_MIN, RUN_LEN_MAX));
        let work = Work {
            blocks: &self.blocks,
            progress,
            rows,
            runs: &runs,
            next: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            error: Mutex::new(None),
        };
        std::thread::scope(|scope| {
            for _ in 1..self.jobs().min(runs.len()) {
                let helper = || work.until_done(|| Ok(Worker::new(new_worker()?)));
                // If threads or memory are short, fewer workers do the same.
                if std::thread::Builder::new().spawn_scoped(scope, helper).is_err() {
                    break;
                }
            }
            work.until_done(|| Ok(Worker::new(Borrowed(first))));
        });
        let error = work.error.into_inner().unwrap_or_else(PoisonError::into_inner);
        rows.clear();
        error.map_or(Ok(()), Err)
    }
}

/// Runs have up to `run_len` stored bytes. Rows of one block stay in one run.
fn runs(rows: &[Row], run_len: u64) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let (mut run_start, mut run_end) = (0, 0);
    for (index, row) in rows.iter().enumerate() {
        let stored = row.stored();
        if let Some(run) = runs.last_mut() {
            let same_block = rows[index - 1].block.covers(&row.block);
            let near = left(stored.start, run_end) <= GAP_LEN_MAX;
            if same_block || near && stored.end.max(run_end) - run_start <= run_len {
                run.end = index + 1;
                run_end = run_end.max(stored.end);
                continue;
            }
        }
        runs.push(index..index + 1);
        (run_start, run_end) = (stored.start, stored.end);
    }
    runs
}

struct Work<'a> {
    blocks: &'a Blocks,
    progress: &'a dyn Progress,
    rows: &'a [Row],
    runs: &'a [Range<usize>],
    next: AtomicUsize,
    stopped: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl Work<'_> {
    fn until_done<W: PieceSink>(&self, worker: impl FnOnce() -> Result<Worker<W>>) {
        let stop = StopOnPanic(&self.stopped);
        let outcome = worker().and_then(|mut worker| {
            while let Some(run) = self.runs.get(self.next.fetch_add(1, Ordering::Relaxed)) {
                if self.stopped.load(Ordering::Relaxed) {
                    break;
                }
                if self.progress.cancelled() {
                    return Err(Error::cancelled());
                }
                worker.run(self.blocks, &self.rows[run.clone()], self.progress)?;
            }
            Ok(())
        });
        std::mem::forget(stop);
        if let Err(error) = outcome {
            self.stopped.store(true, Ordering::Relaxed);
            self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }
}

/// The panic continues once all workers have ended.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The first worker's sink belongs to the caller, and receives the length of each file first.
struct Borrowed<'a, W>(&'a mut W);

impl<W: PieceSink> PieceSink for Borrowed<'_, W> {
    fn piece(&mut self, file_index: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        self.0.piece(file_index, offset, bytes)
    }

    fn failed(&mut self, file_index: usize, error: Error) -> Result<()> {
        self.0.failed(file_index, error)
    }
}

struct Worker<W> {
    sink: W,
    decoders: Decoders,
    stored: Vec<u8>,
    decoded: Vec<u8>,
    last: Repeated,
}

/// A block whose decoded length is at least this multiple of its stored length is kept: runs of
/// zeros are stored as identical blocks.
const REPEATED_FACTOR: usize = 64;

/// The last decoded block, if it is likely to recur.
#[derive(Default)]
struct Repeated {
    stored: Vec<u8>,
    block: Option<(BlockRef, usize)>,
}

impl Repeated {
    /// Returns the decoded length if the stored bytes equal those of the last block.
    fn find(&self, block: &BlockRef, stored: &[u8]) -> Option<usize> {
        let (last, len) = self.block?;
        let is_same = BlockRef { offset: last.offset, ..*block } == last && self.stored == stored;
        is_same.then_some(len)
    }

    fn put(&mut self, block: &BlockRef, stored: &[u8], len: Option<usize>) {
        self.block = len.filter(|len| stored.len() <= len / REPEATED_FACTOR).map(|len| (*block, len));
        if self.block.is_some() {
            self.stored.clear();
            self.stored.extend_from_slice(stored);
        }
    }
}

impl<W: PieceSink> Worker<W> {
    fn new(sink: W) -> Self {
        Worker {
            sink,
            decoders: Decoders::new(),
            stored: Vec::new(),
            decoded: Vec::new(),
            last: Repeated::default(),
        }
    }

    /// If the common read fails, each block is read alone.
    fn run(&mut self, all: &Blocks, rows: &[Row], progress: &dyn Progress) -> Result<()> {
        let start = rows[0].block.offset;
        let mut stored = std::mem::take(&mut self.stored);
        let mut blocks = rows.chunk_by(|a, b| a.block.covers(&b.block));
        let whole = read_run(all, rows, &mut stored);
        let outcome = blocks.try_for_each(|rows| {
            let block = rows[0].block;
            let bytes = if whole.is_ok() {
                let at = (block.offset - start) as usize;
                Ok(&stored[at..at + block.stored_len as usize])
            } else {
                let len = block.stored_len as usize;
                block::check(&*all.image, &block)
                    .and_then(|()| read(all, block.offset, len, &mut stored))
                    .map(|()| &stored[..len])
            };
            match bytes {
                Ok(bytes) => {
                    let mut done = 0;
                    while done < rows.len() {
                        done += self.block(all, bytes, &rows[done..])?;
                    }
                    Ok(())
                }
                Err(error) => self.fail(rows, &error),
            }
        });
        self.stored = stored;
        progress.advance(0, rows.iter().map(|row| u64::from(row.len)).sum(), 0);
        outcome
    }

    /// Serves the rows that want the first block or a prefix of it. Returns the number of rows
    /// completed: all, unless decoding fails; a shorter prefix may succeed.
    fn block(&mut self, blocks: &Blocks, stored: &[u8], rows: &[Row]) -> Result<usize> {
        let block = &rows[0].block;
        let mut decoded = std::mem::take(&mut self.decoded);
        if block.algorithm.is_some() && decoded.len() < block.decoded_len as usize {
            decoded.resize(block.decoded_len as usize, 0);
        }
        let outcome = match self.last.find(block, stored) {
            Some(len) => Ok(len),
            None => {
                let outcome = block::decode(&mut self.decoders, block, stored, &mut decoded);
                if block.algorithm.is_some() {
                    blocks.tally.decoded(outcome.as_ref().copied().map_err(|_| ()));
                    self.last.put(block, stored, outcome.as_ref().ok().copied());
                }
                outcome
            }
        };
        let outcome = match outcome {
            Ok(len) => {
                let bytes = if block.algorithm.is_some() { &decoded[..len] } else { stored };
                let handed_out = rows.iter().try_for_each(|row| {
                    match block::slice(block, bytes, row.start, u64::from(row.len)) {
                        Ok(piece) => self.sink.piece(row.file as usize, row.offset, piece),
                        Err(error) => self.sink.failed(row.file as usize, error),
                    }
                });
                handed_out.map(|()| rows.len())
            }
            Err(error) => {
                let alike = rows.iter().position(|row| row.block != *block).unwrap_or(rows.len());
                self.fail(&rows[..alike], &error).map(|()| alike)
            }
        };
        self.decoded = decoded;
        outcome
    }

    fn fail(&mut self, rows: &[Row], error: &Error) -> Result<()> {
        rows.iter().try_for_each(|row| self.sink.failed(row.file as usize, error.clone()))
    }
}

/// Fails unless all blocks of `rows` are valid.
fn read_run(blocks: &Blocks, rows: &[Row], out: &mut Vec<u8>) -> Result<()> {
    let start = rows[0].block.offset;
    let mut end = start;
    for row in rows {
        block::check(&*blocks.image, &row.block)?;
        end = end.max(row.stored().end);
    }
    read(blocks, start, (end - start) as usize, out)
}

/// `out` grows if needed.
fn read(blocks: &Blocks, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<()> {
    if out.len() < len {
        out.resize(len, 0);
    }
    blocks.read_image(offset, &mut out[..len])
}

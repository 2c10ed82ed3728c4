//! Reads files in a given order, each from start to end: worker threads decode ahead, in bounded
//! memory.

use crate::Wanted;
use crate::block::{Decoded, Place, SharedBytes};
use crate::blocks::WantedBlock;
use crate::engine::ReadEngine;
use crate::slot::Slot;
use packfs_codec::Decoders;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{Error, Progress, Result, range_at};
use packfs_format::{Extent, ExtentFrom, units::*};
use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Least decoded bytes ahead of delivery, whatever the number of workers and the length of blocks.
const AHEAD_LEN_MIN: u64 = 4 << 20;
/// Additional bytes for each worker after the second: enough to keep all busy, and few enough for
/// CPU caches.
const AHEAD_LEN_A_WORKER: u64 = 1 << 20;
/// Most steps ahead of delivery: files and extents may be tiny.
const AHEAD_STEPS: usize = 4096;
/// Extents of one file that are looked up at a time.
const EXTENTS_AT_ONCE: usize = 1024;
/// Decoded bytes that a worker takes at a time, unless one block is longer.
const RUN_DECODED_LEN_MAX: u64 = 128 << 10;
/// Bytes read at a time from uncompressed data.
const STORED_PIECE_LEN: u64 = 256 << 10;
/// Threads that announce reads of a remote image: one waits for a round trip while the other one
/// receives.
const ANNOUNCERS: usize = 2;
/// Less data than this is not worth starting threads.
const THREADS_LEN_MIN: u64 = 256 << 10;

/// A part of a file, in order.
#[derive(Debug)]
pub enum Piece<'a> {
    /// Bytes.
    Data {
        /// Position in the file.
        offset: u64,
        /// The bytes; cloning shares them without copying.
        bytes: &'a SharedBytes,
    },
    /// Zeros that are not stored.
    Hole {
        /// Position in the file.
        offset: u64,
        /// Length in bytes.
        len: u64,
    },
    /// End of the file.
    End,
}

impl ReadEngine {
    /// Delivers the contents of `files` one after the other, each from start to end and then
    /// [`Piece::End`], on the calling thread.
    ///
    /// Errors: those of `deliver`, `Corrupt`, `Io`, `Cancelled`.
    pub fn in_file_order(
        &self,
        files: &[Wanted],
        progress: &dyn Progress,
        deliver: &mut dyn FnMut(usize, Piece<'_>) -> Result<()>,
    ) -> Result<()> {
        let len: u64 = files.iter().fold(0, |len, file| end_of(len, file.len));
        let worker_count = if len < THREADS_LEN_MIN { 0 } else { self.jobs() };
        let (ahead, asked) = channel::<Vec<WantedBlock>>();
        let (announce, announced) = channel::<Vec<Range<u64>>>();
        let (asked, announced) = (Mutex::new(asked), Mutex::new(announced));
        let is_far = self.blocks.image.fetched().is_some();
        let has_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Moved in, so that workers end when the delivery does.
            let (ahead, announce) = (ahead, announce);
            let _ending = Ending(&has_ended);
            if is_far {
                for _ in 0..ANNOUNCERS {
                    scope.spawn(|| self.announce_ahead(&announced, &has_ended));
                }
            }
            if worker_count > 1 {
                for _ in 0..worker_count {
                    scope.spawn(|| self.decode_ahead(&asked));
                }
            }
            let ahead = (worker_count > 1).then_some(ahead);
            let mut steps = Steps::new(self, files, ahead, is_far.then_some(announce), worker_count);
            let mut decoders = Decoders::new();
            while let Some((file, step)) = steps.next() {
                if progress.cancelled() {
                    return Err(Error::cancelled());
                }
                let piece_len = step.len();
                match step {
                    Step::Failed(error) => return Err(error),
                    Step::End => deliver(file, Piece::End)?,
                    Step::Hole { offset, len } => deliver(file, Piece::Hole { offset, len })?,
                    Step::Stored { offset, len, at } => {
                        let mut raw = self.blocks.buffers.take(len as usize);
                        raw.resize(len as usize, 0);
                        self.blocks.read_image(at, &mut raw)?;
                        let bytes = SharedBytes::all(Arc::new(Decoded::of_stored(raw)));
                        deliver(file, Piece::Data { offset, bytes: &bytes })?;
                    }
                    Step::Block { offset, len, start, block, slot } => {
                        slot.want(&self.blocks.tally);
                        let decoded = self.blocks.get(&slot, &block, &mut decoders)?;
                        let total = decoded.len() as u64;
                        let bytes = SharedBytes::of(&block, decoded, start, len)?;
                        deliver(file, Piece::Data { offset, bytes: &bytes })?;
                        self.blocks.cache.use_up(&slot, len, total);
                    }
                }
                progress.advance(0, piece_len, 0);
            }
            Ok(())
        })
    }

    /// Errors are left to the reads.
    fn announce_ahead(&self, announced: &Mutex<Receiver<Vec<Range<u64>>>>, has_ended: &AtomicBool) {
        loop {
            let next = announced.lock().unwrap_or_else(PoisonError::into_inner).recv();
            match next {
                Ok(ranges) if !has_ended.load(Ordering::Relaxed) => self.blocks.image.will_read(&ranges),
                _ => return,
            }
        }
    }

    fn decode_ahead(&self, asked: &Mutex<Receiver<Vec<WantedBlock>>>) {
        let mut decoders = Decoders::new();
        loop {
            let next = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(run) = next else { return };
            self.blocks.decode_ahead(&run, &mut decoders);
        }
    }
}

/// Also ends the announcing threads after an error.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

enum Step {
    Hole { offset: u64, len: u64 },
    Stored { offset: u64, len: u64, at: u64 },
    Block { offset: u64, len: u64, start: u32, block: BlockRef, slot: Arc<Slot> },
    End,
    Failed(Error),
}

impl Step {
    fn len(&self) -> u64 {
        match self {
            Step::Hole { len, .. } | Step::Stored { len, .. } | Step::Block { len, .. } => *len,
            Step::End | Step::Failed(_) => 0,
        }
    }
}

struct Queued {
    file: usize,
    step: Step,
    /// Memory of a block that no earlier step needs.
    memory_len: u64,
}

struct Steps<'a> {
    engine: &'a ReadEngine,
    files: &'a [Wanted],
    ahead: Option<Sender<Vec<WantedBlock>>>,
    run: Vec<WantedBlock>,
    run_len: u64,
    announce: Option<Sender<Vec<Range<u64>>>>,
    stored: Vec<Range<u64>>,
    stored_len: u64,
    queue: VecDeque<Queued>,
    queued_len: u64,
    /// Next file to look up, and the position in it.
    file: usize,
    offset: u64,
    len_max: u64,
}

impl<'a> Steps<'a> {
    fn new(
        engine: &'a ReadEngine,
        files: &'a [Wanted],
        ahead: Option<Sender<Vec<WantedBlock>>>,
        announce: Option<Sender<Vec<Range<u64>>>>,
        worker_count: usize,
    ) -> Self {
        // Without workers nothing is gained by looking far ahead.
        let more = AHEAD_LEN_A_WORKER * left(worker_count, 2) as u64;
        let len_max = if ahead.is_some() { AHEAD_LEN_MIN + more } else { 1 };
        let (run, stored, queue) = (Vec::new(), Vec::new(), VecDeque::new());
        Steps {
            engine,
            files,
            ahead,
            run,
            run_len: 0,
            announce,
            stored,
            stored_len: 0,
            queue,
            queued_len: 0,
            file: 0,
            offset: 0,
            len_max,
        }
    }

    fn next(&mut self) -> Option<(usize, Step)> {
        // Refilled at half, so that workers are woken for many blocks at a time.
        let is_low = self.queued_len < self.len_max / 2 && self.queue.len() < AHEAD_STEPS / 2;
        if self.queue.is_empty() || is_low {
            self.look_ahead();
        }
        let next = self.queue.pop_front()?;
        self.queued_len -= next.memory_len;
        Some((next.file, next.step))
    }

    fn look_ahead(&mut self) {
        while self.file < self.files.len() && self.queued_len < self.len_max && self.queue.len() < AHEAD_STEPS
        {
            if let Err(error) = self.look_up() {
                self.push(Step::Failed(error));
                self.file = self.files.len();
            }
        }
        self.hand_over();
        self.stored_len = 0;
        let stored = std::mem::take(&mut self.stored);
        if let Some(announce) = self.announce.as_ref().filter(|_| !stored.is_empty()) {
            let _ = announce.send(stored);
        }
    }

    fn look_up(&mut self) -> Result<()> {
        let wanted = self.files[self.file];
        if self.offset >= wanted.len {
            self.push(Step::End);
            (self.file, self.offset) = (self.file + 1, 0);
            return Ok(());
        }
        let engine = self.engine;
        let mut extents = 0;
        let from = self.offset;
        engine.volume.extents(wanted.id, from..wanted.len, &mut |extent| {
            extents += 1;
            self.add(&extent);
            let full = extents == EXTENTS_AT_ONCE
                || self.queued_len >= self.len_max
                || self.queue.len() >= AHEAD_STEPS;
            if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if self.offset == from {
            return Err(engine.not_mapped(wanted.id, from));
        }
        Ok(())
    }

    fn add(&mut self, extent: &Extent) {
        let (offset, len) = (extent.offset, extent.len);
        self.offset = extent.range().end;
        match extent.from {
            ExtentFrom::Hole => self.push(Step::Hole { offset, len }),
            ExtentFrom::Stored(at) => {
                let mut done = 0;
                while done < len && self.queue.len() < 2 * AHEAD_STEPS {
                    let part = (len - done).min(STORED_PIECE_LEN);
                    let at = end_of(at, done);
                    self.push(Step::Stored { offset: offset + done, len: part, at });
                    done += part;
                }
                self.will_read(at, done);
                // The part that did not fit is looked up again.
                self.offset = offset + done;
            }
            ExtentFrom::Block { block, start } => {
                // A block of a single file is needed once; only shared ones are cached.
                let whole = start == 0
                    && len == u64::from(block.decoded_len)
                    && block.decodes_to != DecodedLen::Prefix;
                let slot = if whole {
                    Arc::new(Slot::new(Place::of(&block)))
                } else {
                    self.engine.blocks.cache.slot(&block)
                };
                let is_new = slot.ask_ahead();
                if is_new {
                    self.will_read(block.offset, block.stored_len.into());
                    self.decode_by_others(block, &slot);
                }
                let memory_len = if is_new { u64::from(block.decoded_len) } else { 0 };
                self.queue_step(Step::Block { offset, len, start, block, slot }, memory_len);
            }
        }
    }

    /// Announces stored bytes, as many as an image can keep until they are read. The image detects
    /// long sequential ranges by itself.
    fn will_read(&mut self, at: u64, len: u64) {
        let len = len.min(left(AHEAD_LEN_MIN, self.stored_len));
        if self.announce.is_some() && len > 0 {
            self.stored.push(range_at(at, len));
            self.stored_len += len;
        }
    }

    fn decode_by_others(&mut self, block: BlockRef, slot: &Arc<Slot>) {
        if self.ahead.is_none() {
            return;
        }
        let len = u64::from(block.decoded_len);
        if self.run_len.plus(len) > RUN_DECODED_LEN_MAX {
            self.hand_over();
        }
        self.run.push((block, Arc::clone(slot)));
        self.run_len = self.run_len.plus(len);
    }

    fn hand_over(&mut self) {
        self.run_len = 0;
        let run = std::mem::take(&mut self.run);
        if let Some(ahead) = self.ahead.as_ref().filter(|_| !run.is_empty()) {
            // Fails only when all workers are gone; the delivery then decodes by itself.
            let _ = ahead.send(run);
        }
    }

    fn push(&mut self, step: Step) {
        self.queue_step(step, 0);
    }

    fn queue_step(&mut self, step: Step, memory_len: u64) {
        self.queued_len += memory_len;
        self.queue.push_back(Queued { file: self.file, step, memory_len });
    }
}

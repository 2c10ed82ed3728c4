//! Fills files with the pieces that the read engine delivers in any order, from several workers at
//! once.
//!
//! Most files consist of one piece: a worker creates, writes and finishes them without
//! synchronization. Others are created without permissions for other users, and stay open (or are
//! reopened, if they are still the same file) until the worker with the last piece finishes them. A
//! file is finished or removed, never left incomplete.

use super::dirs::Dirs;
use super::losses::Failures;
use super::make::Maker;
use super::restore::CreatedWith;
use crate::select::WalkEntry;
use packfs_core::{Error, NodeKind, Progress, Result};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const MISSING: u8 = 0;
const PARTIAL: u8 = 1;
const DONE: u8 = 2;
/// Failed and removed.
const FAILED: u8 = 3;

const PARTIAL_MODE: u16 = 0o600;

pub(super) struct Filling<'a> {
    maker: &'a Maker<'a>,
    files: &'a [WalkEntry<'a>],
    progress: &'a dyn Progress,
    failures: &'a Failures,
    states: Vec<AtomicU8>,
    /// Bytes of data still missing, without holes.
    remaining: Vec<AtomicU64>,
    partial: Mutex<Partial>,
    open_max: usize,
}

#[derive(Default)]
struct Partial {
    open: HashMap<usize, Arc<File>>,
    /// Queue in the order opened; may include complete files.
    queue: VecDeque<usize>,
    /// Device and inode of files closed because too many were open.
    closed: HashMap<usize, (u64, u64)>,
}

impl<'a> Filling<'a> {
    /// `open_max`: most open files, at least one.
    pub(super) fn new(
        maker: &'a Maker<'a>,
        files: &'a [WalkEntry<'a>],
        progress: &'a dyn Progress,
        failures: &'a Failures,
        open_max: usize,
    ) -> Self {
        Filling {
            maker,
            files,
            progress,
            failures,
            states: files.iter().map(|_| AtomicU8::new(MISSING)).collect(),
            remaining: files.iter().map(|_| AtomicU64::new(0)).collect(),
            partial: Mutex::default(),
            open_max: open_max.max(1),
        }
    }

    /// Must precede the first piece of the file.
    pub(super) fn expect(&self, file: usize, data_len: u64) {
        if let Some(remaining) = self.remaining.get(file) {
            remaining.store(data_len, Ordering::Relaxed);
        }
    }

    /// Pieces do not overlap.
    pub(super) fn piece(&self, dirs: &mut Dirs<'_>, file: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        let (Some(entry), Some(remaining)) = (self.files.get(file), self.remaining.get(file)) else {
            return Err(Error::failed(format!(
                "internal: contents of a file that was not requested (index {file})"
            )));
        };
        let NodeKind::File { len, .. } = self.maker.tree.node(entry.node).kind else {
            return Err(Error::failed(format!("{:?} has contents but is no file", self.maker.path(entry))));
        };
        let part_len = bytes.len() as u64;
        // Acquire: the worker with an earlier piece has marked the file first.
        let left = remaining.load(Ordering::Acquire);
        if self.states[file].load(Ordering::Relaxed) == MISSING && left == part_len {
            return self.whole(dirs, file, entry, len, offset, bytes);
        }
        let Some(fd) = self.open_partial(dirs, file, entry, len)? else { return Ok(()) };
        // Formats without holes have clusters of zeros instead, one of which may represent very
        // many.
        if !is_zero(bytes) {
            self.maker.write(fd.as_fd(), entry, offset, bytes)?;
        }
        // Every worker's writes happen before the last one finishes the file.
        let before = remaining.fetch_sub(part_len, Ordering::AcqRel);
        if before < part_len {
            return Err(Error::failed(format!("{:?}: more contents than announced", self.maker.path(entry))));
        }
        if before == part_len {
            self.lock().open.remove(&file);
            self.maker.restore.finish_fd(&fd, entry.node, CreatedWith { mode: Some(PARTIAL_MODE) });
            self.done(file, len);
        }
        Ok(())
    }

    fn whole(
        &self,
        dirs: &mut Dirs<'_>,
        file: usize,
        entry: &WalkEntry<'_>,
        len: u64,
        offset: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let mode = self.maker.restore.mode_to_make(self.maker.tree.node(entry.node));
        let fd = self.maker.file(dirs.get(entry.dir)?, entry, mode)?;
        self.states[file].store(PARTIAL, Ordering::Relaxed);
        let zeros = is_zero(bytes);
        if zeros || bytes.len() as u64 != len {
            self.maker.set_len(&fd, entry, len)?;
        }
        if !zeros {
            self.maker.write(fd.as_fd(), entry, offset, bytes)?;
        }
        self.maker.restore.finish_fd(&fd, entry.node, CreatedWith { mode: Some(mode) });
        self.done(file, len);
        Ok(())
    }

    fn done(&self, file: usize, len: u64) {
        self.states[file].store(DONE, Ordering::Release);
        self.progress.advance(1, 0, len);
    }

    fn lock(&self) -> MutexGuard<'_, Partial> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file may be open, closed by another worker, or new. `None` if it has failed.
    fn open_partial(
        &self,
        dirs: &mut Dirs<'_>,
        file: usize,
        entry: &WalkEntry<'_>,
        len: u64,
    ) -> Result<Option<Arc<File>>> {
        let mut partial = self.lock();
        if let Some(fd) = partial.open.get(&file) {
            return Ok(Some(Arc::clone(fd)));
        }
        if self.states[file].load(Ordering::Relaxed) == FAILED {
            return Ok(None);
        }
        let dir = dirs.get(entry.dir)?;
        let fd = match partial.closed.remove(&file) {
            Some(identity) => self.reopen(dir, entry, identity)?,
            None => {
                let fd = self.maker.file(dir, entry, PARTIAL_MODE)?;
                self.states[file].store(PARTIAL, Ordering::Relaxed);
                self.maker.set_len(&fd, entry, len)?;
                fd
            }
        };
        let fd = Arc::new(fd);
        self.make_room(&mut partial)?;
        partial.open.insert(file, Arc::clone(&fd));
        partial.queue.push_back(file);
        Ok(Some(fd))
    }

    /// Closes the file that was opened first.
    fn make_room(&self, partial: &mut Partial) -> Result<()> {
        while partial.open.len() >= self.open_max {
            let Some(oldest) = partial.queue.pop_front() else { return Ok(()) };
            let Some(fd) = partial.open.remove(&oldest) else { continue };
            let stat = rustix::fs::fstat(&*fd)
                .map_err(|errno| self.maker.cannot("read the attributes of", &self.files[oldest], errno))?;
            partial.closed.insert(oldest, (stat.st_dev, stat.st_ino));
        }
        // Complete files accumulate in the queue before one that stays open long.
        if partial.queue.len() > 4 * self.open_max {
            let Partial { open, queue, .. } = partial;
            queue.retain(|file| open.contains_key(file));
        }
        Ok(())
    }

    /// Verifies that the file is the one that was created.
    fn reopen(&self, dir: BorrowedFd<'_>, entry: &WalkEntry<'_>, identity: (u64, u64)) -> Result<File> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = rustix::fs::openat(dir, entry.name, flags, Mode::empty());
        let fd = fd.map_err(|errno| self.maker.cannot("open", entry, errno))?;
        let stat = rustix::fs::fstat(&fd)
            .map_err(|errno| self.maker.cannot("read the attributes of", entry, errno))?;
        if (stat.st_dev, stat.st_ino) != identity {
            return Err(self.maker.cannot("continue writing", entry, Errno::STALE));
        }
        Ok(fd.into())
    }

    pub(super) fn name(&self, file: usize, error: Error) -> Error {
        match self.files.get(file) {
            Some(entry) => error.at(format!("{:?}", self.maker.path(entry))),
            None => error,
        }
    }

    /// Removes the partial contents; further pieces are ignored.
    pub(super) fn fail(&self, dirs: &mut Dirs<'_>, file: usize, error: Error) -> Result<()> {
        let Some(state) = self.states.get(file) else { return Err(error) };
        // Files with several pieces are created only under this lock, so none is created after it
        // failed.
        let mut partial = self.lock();
        let before = state.swap(FAILED, Ordering::AcqRel);
        partial.open.remove(&file);
        partial.closed.remove(&file);
        drop(partial);
        if before == FAILED {
            return Ok(());
        }
        self.failures.add(error, self.progress);
        if before == PARTIAL { self.remove(dirs, file) } else { Ok(()) }
    }

    fn remove(&self, dirs: &mut Dirs<'_>, file: usize) -> Result<()> {
        let Some(entry) = self.files.get(file) else { return Ok(()) };
        self.maker
            .remove(dirs.get(entry.dir)?, entry.name)
            .map_err(|errno| self.maker.cannot("remove incomplete", entry, errno))
    }

    pub(super) fn discard_partial(&self, dirs: &mut Dirs<'_>) -> Result<()> {
        self.with_state(PARTIAL).into_iter().try_for_each(|file| self.remove(dirs, file))
    }

    pub(super) fn missing(&self) -> Vec<usize> {
        self.with_state(MISSING)
    }

    pub(super) fn failed(&self) -> Vec<usize> {
        self.with_state(FAILED)
    }

    fn with_state(&self, wanted: u8) -> Vec<usize> {
        let states = self.states.iter().enumerate();
        states.filter(|(_, state)| state.load(Ordering::Acquire) == wanted).map(|(file, _)| file).collect()
    }

    pub(super) fn hole(&self, dirs: &mut Dirs<'_>, file: usize) -> Result<()> {
        let (Some(entry), Some(remaining)) = (self.files.get(file), self.remaining.get(file)) else {
            return Ok(());
        };
        if remaining.load(Ordering::Acquire) > 0 {
            return Err(Error::failed(format!(
                "{:?}: fewer contents than announced",
                self.maker.path(entry)
            )));
        }
        self.maker.bare(dirs, entry)?;
        if let NodeKind::File { len, .. } = self.maker.tree.node(entry.node).kind {
            self.done(file, len);
        }
        Ok(())
    }
}

/// Tests the first few bytes before the rest, for speed.
fn is_zero(bytes: &[u8]) -> bool {
    let (head, rest) = bytes.split_at(bytes.len().min(16));
    head.iter().all(|&byte| byte == 0)
        && rest.chunks(4096).all(|chunk| chunk.iter().fold(0, |all, &byte| all | byte) == 0)
}

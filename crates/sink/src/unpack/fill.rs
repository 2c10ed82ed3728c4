//! Fills files with the pieces that the read engine delivers, in whatever order, from several
//! workers at once.
//!
//! Most files come in one piece: made, written and finished by one worker without telling anybody.
//! The others are made unreadable to anybody else, stay open (or are opened again, if it is still
//! the same file) until their last byte has come, and are finished by the worker that brings it. A
//! file is finished or removed, never left half.

use super::dirs::Dirs;
use super::losses::Failures;
use super::make::Maker;
use super::restore::Made;
use crate::select::Met;
use packfs_core::{Error, NodeKind, Progress, Result};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Nothing of the file is there.
const MISSING: u8 = 0;
/// It is there, but not all of it.
const PARTIAL: u8 = 1;
/// It is complete.
const DONE: u8 = 2;
/// It cannot be had, and was removed.
const FAILED: u8 = 3;

/// Permissions of a file while it is being filled.
const PARTIAL_MODE: u16 = 0o600;

/// All files to be filled, shared by the workers.
pub(super) struct Filling<'a> {
    maker: &'a Maker<'a>,
    files: &'a [Met<'a>],
    progress: &'a dyn Progress,
    failures: &'a Failures,
    states: Vec<AtomicU8>,
    /// Bytes of data still to come, holes not counted.
    remaining: Vec<AtomicU64>,
    partial: Mutex<Partial>,
    open_max: usize,
}

/// Files with pieces still to come.
#[derive(Default)]
struct Partial {
    open: HashMap<usize, Arc<File>>,
    /// In the order they were opened; those done since are still in it.
    queue: VecDeque<usize>,
    /// Device and inode of those that were closed because too many were open.
    closed: HashMap<usize, (u64, u64)>,
}

impl<'a> Filling<'a> {
    /// `open_max`: how many files may be open at a time, at least one.
    pub(super) fn new(
        maker: &'a Maker<'a>,
        files: &'a [Met<'a>],
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

    /// Says how many bytes of a file will come as pieces. Before the first piece of it.
    pub(super) fn expect(&self, file: usize, data_len: u64) {
        if let Some(remaining) = self.remaining.get(file) {
            remaining.store(data_len, Ordering::Relaxed);
        }
    }

    /// Takes one piece of a file. No two pieces overlap.
    pub(super) fn piece(&self, dirs: &mut Dirs<'_>, file: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        let (Some(met), Some(remaining)) = (self.files.get(file), self.remaining.get(file)) else {
            return Err(Error::failed(format!("contents of a file that was not asked for (index {file})")));
        };
        let NodeKind::File { len, .. } = self.maker.tree.node(met.node).kind else {
            return Err(Error::failed(format!("{:?} has contents but is no file", self.maker.path(met))));
        };
        let part_len = bytes.len() as u64;
        // Acquire: whoever has brought a piece before has marked the file first.
        let left = remaining.load(Ordering::Acquire);
        if self.states[file].load(Ordering::Relaxed) == MISSING && left == part_len {
            return self.whole(dirs, file, met, len, offset, bytes);
        }
        let Some(fd) = self.open_partial(dirs, file, met, len)? else { return Ok(()) };
        // Formats without holes have clusters of zeros in their place, one that stands for very
        // many.
        if !is_zero(bytes) {
            self.maker.write(fd.as_fd(), met, offset, bytes)?;
        }
        // Every worker's writes come before the last one's finish.
        let before = remaining.fetch_sub(part_len, Ordering::AcqRel);
        if before < part_len {
            return Err(Error::failed(format!("{:?}: more contents than announced", self.maker.path(met))));
        }
        if before == part_len {
            self.lock().open.remove(&file);
            self.maker.restore.finish_fd(&fd, met.node, Made { mode: Some(PARTIAL_MODE) });
            self.done(file, len);
        }
        Ok(())
    }

    /// Makes a file whose data comes in one piece.
    fn whole(
        &self,
        dirs: &mut Dirs<'_>,
        file: usize,
        met: &Met<'_>,
        len: u64,
        offset: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let mode = self.maker.restore.mode_to_make(self.maker.tree.node(met.node));
        let fd = self.maker.file(dirs.get(met.dir)?, met, mode)?;
        self.states[file].store(PARTIAL, Ordering::Relaxed);
        let zeros = is_zero(bytes);
        if zeros || bytes.len() as u64 != len {
            self.maker.set_len(&fd, met, len)?;
        }
        if !zeros {
            self.maker.write(fd.as_fd(), met, offset, bytes)?;
        }
        self.maker.restore.finish_fd(&fd, met.node, Made { mode: Some(mode) });
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

    /// The file, open for writing: as another worker left it, opened again, or made. `None` if it
    /// has failed.
    fn open_partial(
        &self,
        dirs: &mut Dirs<'_>,
        file: usize,
        met: &Met<'_>,
        len: u64,
    ) -> Result<Option<Arc<File>>> {
        let mut partial = self.lock();
        if let Some(fd) = partial.open.get(&file) {
            return Ok(Some(Arc::clone(fd)));
        }
        if self.states[file].load(Ordering::Relaxed) == FAILED {
            return Ok(None);
        }
        let dir = dirs.get(met.dir)?;
        let fd = match partial.closed.remove(&file) {
            Some(identity) => self.reopen(dir, met, identity)?,
            None => {
                let fd = self.maker.file(dir, met, PARTIAL_MODE)?;
                self.states[file].store(PARTIAL, Ordering::Relaxed);
                self.maker.set_len(&fd, met, len)?;
                fd
            }
        };
        let fd = Arc::new(fd);
        self.make_room(&mut partial)?;
        partial.open.insert(file, Arc::clone(&fd));
        partial.queue.push_back(file);
        Ok(Some(fd))
    }

    /// Closes the file that has been open longest, if as many are open as may be.
    fn make_room(&self, partial: &mut Partial) -> Result<()> {
        while partial.open.len() >= self.open_max {
            let Some(oldest) = partial.queue.pop_front() else { return Ok(()) };
            let Some(fd) = partial.open.remove(&oldest) else { continue };
            let stat = rustix::fs::fstat(&*fd)
                .map_err(|errno| self.maker.cannot("look at", &self.files[oldest], errno))?;
            partial.closed.insert(oldest, (stat.st_dev, stat.st_ino));
        }
        // Names of files that are done pile up in front of one that stays open long.
        if partial.queue.len() > 4 * self.open_max {
            let Partial { open, queue, .. } = partial;
            queue.retain(|file| open.contains_key(file));
        }
        Ok(())
    }

    /// Opens a file again, and makes sure that it is the one that was made.
    fn reopen(&self, dir: BorrowedFd<'_>, met: &Met<'_>, identity: (u64, u64)) -> Result<File> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = rustix::fs::openat(dir, met.name, flags, Mode::empty());
        let fd = fd.map_err(|errno| self.maker.cannot("open", met, errno))?;
        let stat = rustix::fs::fstat(&fd).map_err(|errno| self.maker.cannot("look at", met, errno))?;
        if (stat.st_dev, stat.st_ino) != identity {
            return Err(self.maker.cannot("go on writing", met, Errno::STALE));
        }
        Ok(fd.into())
    }

    /// Says which file an error is about.
    pub(super) fn name(&self, file: usize, error: Error) -> Error {
        match self.files.get(file) {
            Some(met) => error.at(format!("{:?}", self.maker.path(met))),
            None => error,
        }
    }

    /// Leaves a file out: what has come of it is removed, what still comes is ignored.
    pub(super) fn fail(&self, dirs: &mut Dirs<'_>, file: usize, error: Error) -> Result<()> {
        let Some(state) = self.states.get(file) else { return Err(error) };
        // Files with several pieces are only made under this lock, so none is made after it was
        // given up.
        let mut partial = self.lock();
        let before = state.swap(FAILED, Ordering::AcqRel);
        partial.open.remove(&file);
        partial.closed.remove(&file);
        drop(partial);
        if before == FAILED {
            return Ok(());
        }
        self.progress.warn(&error.to_string());
        self.failures.add(error);
        if before == PARTIAL { self.remove(dirs, file) } else { Ok(()) }
    }

    fn remove(&self, dirs: &mut Dirs<'_>, file: usize) -> Result<()> {
        let Some(met) = self.files.get(file) else { return Ok(()) };
        self.maker
            .remove(dirs.get(met.dir)?, met.name)
            .map_err(|errno| self.maker.cannot("remove incomplete", met, errno))
    }

    /// Removes every file of which only a part has come.
    pub(super) fn discard_partial(&self, dirs: &mut Dirs<'_>) -> Result<()> {
        self.with_state(PARTIAL).into_iter().try_for_each(|file| self.remove(dirs, file))
    }

    /// The files of which nothing has come, and which have not failed.
    pub(super) fn missing(&self) -> Vec<usize> {
        self.with_state(MISSING)
    }

    /// The files that were left out.
    pub(super) fn failed(&self) -> Vec<usize> {
        self.with_state(FAILED)
    }

    fn with_state(&self, wanted: u8) -> Vec<usize> {
        let states = self.states.iter().enumerate();
        states.filter(|(_, state)| state.load(Ordering::Acquire) == wanted).map(|(file, _)| file).collect()
    }

    /// Makes a file that is one hole.
    pub(super) fn hole(&self, dirs: &mut Dirs<'_>, file: usize) -> Result<()> {
        let (Some(met), Some(remaining)) = (self.files.get(file), self.remaining.get(file)) else {
            return Ok(());
        };
        if remaining.load(Ordering::Acquire) > 0 {
            return Err(Error::failed(format!("{:?}: fewer contents than announced", self.maker.path(met))));
        }
        self.maker.bare(dirs, met)?;
        if let NodeKind::File { len, .. } = self.maker.tree.node(met.node).kind {
            self.done(file, len);
        }
        Ok(())
    }
}

/// Whether all bytes are zero; looks at the first few before it looks at all.
fn is_zero(bytes: &[u8]) -> bool {
    let (head, rest) = bytes.split_at(bytes.len().min(16));
    head.iter().all(|&byte| byte == 0)
        && rest.chunks(4096).all(|chunk| chunk.iter().fold(0, |all, &byte| all | byte) == 0)
}

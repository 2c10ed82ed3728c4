//! Reads directories for the scan, several entries at a time.
//!
//! A filesystem that answers slowly, as over a network, answers other questions meanwhile. The
//! list of directories mirrors that of the scan, which takes the last one next, and alone decides
//! what becomes of its entries.

use super::found::{Entries, Found, Looker, NotListed};
use crate::dir_contents::open_dir_below;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::Dir;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

/// Threads beside that of the scan.
const THREADS: usize = 7;
/// Directories that may be open at a time.
const DIRS_MAX: usize = 64;
/// Entries read ahead, above which only the next directories are read.
const ENTRIES_MAX: usize = 1 << 16;
/// Directories that are read however many entries wait.
const NEXT: usize = 2;
/// Limit of files, below which the scan keeps them to itself.
const FILES_MIN: u64 = 128;
/// Entries that a thread looks up before it shows them.
const BATCH: usize = 16;

#[derive(Default)]
pub(super) struct Ahead {
    state: Mutex<State>,
    /// The scan waits for its last directory, the other threads for work.
    is_read: Condvar,
    has_work: Condvar,
    is_started: AtomicBool,
}

#[derive(Default)]
struct State {
    dirs: Vec<Slot>,
    /// Entries of open directories.
    entries: usize,
    is_over: bool,
}

enum Slot {
    /// The path from the root.
    Unread(Vec<u8>),
    Opening,
    Open(Arc<Listing>),
    Failed(NotListed),
}

struct Listing {
    number: String,
    names: Vec<CString>,
    /// Index of the first entry that is not yet looked up.
    next: AtomicUsize,
    found: Mutex<Lookups>,
}

struct Lookups {
    /// Until all entries are looked up, so that few directories are open at a time.
    fd: Option<Arc<OwnedFd>>,
    left: usize,
    found: Vec<Option<Result<Found, Errno>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listing {
    fn open(root: &OwnedFd, host: &[u8], follow: bool) -> Result<Self, NotListed> {
        let cannot = |verb| move |error| NotListed { verb, error };
        let fd = open_dir_below(root, host, follow).map_err(cannot("open"))?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&fd).map_err(cannot("read"))? {
            let entry = entry.map_err(cannot("read"))?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        let number = fd.as_raw_fd().to_string();
        let (left, found) = (names.len(), names.iter().map(|_| None).collect());
        let lookups = Lookups { fd: (left > 0).then(|| Arc::new(fd)), left, found };
        Ok(Listing { number, names, next: AtomicUsize::new(0), found: Mutex::new(lookups) })
    }

    fn has_work(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.names.len()
    }

    /// Looks up the entries that no other thread does.
    fn look(&self, looker: &mut Looker) {
        let Some(fd) = lock(&self.found).fd.clone() else { return };
        loop {
            let start = self.next.fetch_add(BATCH, Ordering::Relaxed).min(self.names.len());
            let names = &self.names[start..self.names.len().min(start + BATCH)];
            if names.is_empty() {
                return;
            }
            let batch: Vec<_> = names.iter().map(|name| looker.look(&fd, &self.number, name)).collect();
            let mut lookups = lock(&self.found);
            lookups.left -= batch.len();
            if lookups.left == 0 {
                lookups.fd = None;
            }
            for (slot, found) in lookups.found[start..].iter_mut().zip(batch) {
                *slot = Some(found);
            }
        }
    }

    /// Returns all entries once they are looked up.
    fn entries(&self) -> Option<Entries> {
        let mut lookups = lock(&self.found);
        let found = (lookups.left == 0).then(|| std::mem::take(&mut lookups.found))?;
        Some(self.names.iter().cloned().zip(found.into_iter().flatten()).collect())
    }
}

impl Ahead {
    pub(super) fn depth(&self) -> usize {
        lock(&self.state).dirs.len()
    }

    pub(super) fn push(&self, hosts: Vec<Vec<u8>>) {
        let count = hosts.len();
        lock(&self.state).dirs.extend(hosts.into_iter().map(Slot::Unread));
        (0..count.min(THREADS)).for_each(|_| self.has_work.notify_one());
    }

    /// Starts the threads if several directories are known. Without threads the scan reads all.
    pub(super) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        root: &'scope OwnedFd,
        looker: &'scope Looker,
    ) {
        let has_files = || getrlimit(Resource::Nofile).current.is_none_or(|limit| limit >= FILES_MIN);
        if self.depth() < 2 || self.is_started.swap(true, Ordering::Relaxed) || !has_files() {
            return;
        }
        for _ in 0..THREADS {
            let _ = std::thread::Builder::new().spawn_scoped(scope, || self.work(root, looker.clone()));
        }
    }

    /// Removes and reads the last directory.
    pub(super) fn pop(&self, root: &OwnedFd, looker: &mut Looker) -> Result<Entries, NotListed> {
        let mut state = lock(&self.state);
        loop {
            match state.dirs.pop() {
                Some(Slot::Unread(host)) => {
                    let index = state.dirs.len();
                    state.dirs.push(Slot::Opening);
                    drop(state);
                    self.open(index, root, &host, looker);
                    state = lock(&self.state);
                }
                Some(Slot::Failed(error)) => return Err(error),
                Some(Slot::Open(listing)) => {
                    state.dirs.push(Slot::Open(Arc::clone(&listing)));
                    drop(state);
                    listing.look(looker);
                    state = lock(&self.state);
                    if let Some(entries) = listing.entries() {
                        state.dirs.pop();
                        state.entries -= entries.len();
                        return Ok(entries);
                    }
                    state = self.wait(state)?;
                }
                Some(Slot::Opening) => {
                    state.dirs.push(Slot::Opening);
                    state = self.wait(state)?;
                }
                None => return Ok(Entries::new()),
            }
        }
    }

    /// Errors: a thread panicked, which its scope reports.
    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>, NotListed> {
        if state.is_over {
            return Err(NotListed { verb: "read", error: Errno::IO });
        }
        Ok(self.is_read.wait(state).unwrap_or_else(PoisonError::into_inner))
    }

    fn open(&self, index: usize, root: &OwnedFd, host: &[u8], looker: &mut Looker) {
        let opened = Listing::open(root, host, looker.follow).map(Arc::new);
        let mut state = lock(&self.state);
        let Some(slot) = state.dirs.get_mut(index) else { return };
        let listing = match opened {
            Ok(listing) => listing,
            Err(error) => return *slot = Slot::Failed(error),
        };
        *slot = Slot::Open(Arc::clone(&listing));
        state.entries += listing.names.len();
        self.is_read.notify_one();
        drop(state);
        let helpers = (listing.names.len() / BATCH).min(THREADS);
        (0..helpers).for_each(|_| self.has_work.notify_one());
        listing.look(looker);
    }

    /// Ends all threads when dropped, also by a panic.
    pub(super) fn end_on_drop(&self) -> EndOnDrop<'_> {
        EndOnDrop(self)
    }

    fn work(&self, root: &OwnedFd, mut looker: Looker) {
        let _ends = self.end_on_drop();
        while let Some(work) = self.next() {
            match work {
                Work::Open(index, host) => self.open(index, root, &host, &mut looker),
                Work::Look(listing) => listing.look(&mut looker),
            }
            // Locked, so that the scan does not miss it between its look and its wait.
            let _state = lock(&self.state);
            self.is_read.notify_one();
        }
    }

    fn next(&self) -> Option<Work> {
        let mut state = lock(&self.state);
        while !state.is_over {
            let has_room = state.entries < ENTRIES_MAX;
            let near = state.dirs.len().saturating_sub(DIRS_MAX);
            for index in (near..state.dirs.len()).rev() {
                let is_next = state.dirs.len() - index <= NEXT;
                let slot = &mut state.dirs[index];
                match slot {
                    Slot::Unread(host) if has_room || is_next => {
                        let host = std::mem::take(host);
                        *slot = Slot::Opening;
                        return Some(Work::Open(index, host));
                    }
                    Slot::Open(listing) if listing.has_work() => {
                        return Some(Work::Look(Arc::clone(listing)));
                    }
                    _ => {}
                }
            }
            state = self.has_work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

enum Work {
    Open(usize, Vec<u8>),
    Look(Arc<Listing>),
}

pub(super) struct EndOnDrop<'a>(&'a Ahead);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).is_over = true;
        self.0.has_work.notify_all();
        self.0.is_read.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_those_that_the_scan_would_read() {
        let folder = tempfile::tempdir().unwrap();
        for dir in 0..300 {
            let files = folder.path().join(dir.to_string());
            std::fs::create_dir(&files).unwrap();
            for file in 0..dir % 40 {
                std::fs::write(files.join(file.to_string()), vec![0; file]).unwrap();
            }
        }
        let root: OwnedFd = std::fs::File::open(folder.path()).unwrap().into();
        let (ahead, mut looker) = (Ahead::default(), Looker::new(false));
        let spare = looker.clone();
        std::thread::scope(|scope| {
            let _ends = ahead.end_on_drop();
            let hosts =
                |range: std::ops::Range<usize>| range.map(|dir| dir.to_string().into_bytes()).collect();
            ahead.push(hosts(0..200));
            ahead.start(scope, &root, &spare);
            // The last is missing.
            ahead.push(hosts(200..301));
            for dir in (0..301).rev() {
                match ahead.pop(&root, &mut looker) {
                    Ok(entries) => {
                        let names: Vec<_> = entries.iter().map(|(name, _)| name.clone()).collect();
                        assert!(names.len() == dir % 40 && names.is_sorted(), "{dir}: {names:?}");
                        for (name, found) in entries {
                            let len = found.unwrap().stat.st_size;
                            assert_eq!(name.to_str().unwrap(), len.to_string());
                        }
                    }
                    Err(not) => assert_eq!((dir, not.verb, not.error), (300, "open", Errno::NOENT)),
                }
            }
            let state = lock(&ahead.state);
            assert_eq!((state.dirs.len(), state.entries), (0, 0));
            drop(state);
            // Threads end while directories are unread.
            ahead.push(hosts(0..200));
        });
    }
}

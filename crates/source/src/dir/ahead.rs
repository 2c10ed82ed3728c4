//! Reads directories ahead of the scan, which alone decides what becomes of their entries.
//!
//! A filesystem that answers slowly, as over a network, is asked several questions at a time. The
//! list of directories mirrors that of the scan, which takes the last one next.

use super::found::{Entries, Looker, NotListed};
use rustix::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

/// Threads beside that of the scan.
const THREADS: usize = 7;
/// Entries read ahead, above which only directories are read that the scan takes soon.
const ENTRIES_MAX: usize = 1 << 16;
/// Directories that the scan takes soon.
const SOON: usize = 16;

#[derive(Default)]
pub(super) struct Ahead {
    state: Mutex<State>,
    changed: Condvar,
    is_started: AtomicBool,
}

#[derive(Default)]
struct State {
    dirs: Vec<Listing>,
    /// Indexes of the directories that nobody reads yet.
    unread: Vec<usize>,
    entries: usize,
    is_over: bool,
}

enum Listing {
    /// The path from the root.
    Unread(Vec<u8>),
    Reading(Vec<u8>),
    Read(Result<Entries, NotListed>),
}

impl Listing {
    fn len(&self) -> usize {
        if let Listing::Read(Ok(entries)) = self { entries.len() } else { 0 }
    }
}

impl Ahead {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn depth(&self) -> usize {
        self.lock().dirs.len()
    }

    pub(super) fn push(&self, hosts: Vec<Vec<u8>>) {
        let mut state = self.lock();
        let start = state.dirs.len();
        state.unread.extend(start..start + hosts.len());
        state.dirs.extend(hosts.into_iter().map(Listing::Unread));
        self.changed.notify_all();
    }

    /// Starts the threads if several directories are known. Without threads the scan reads all.
    pub(super) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        root: &'scope OwnedFd,
        looker: &'scope Looker,
    ) {
        if self.depth() < 2 || self.is_started.swap(true, Ordering::Relaxed) {
            return;
        }
        for _ in 0..THREADS {
            let _ = std::thread::Builder::new().spawn_scoped(scope, || self.work(root, looker.clone()));
        }
    }

    /// Removes the last directory; returns its path if nobody has read it.
    pub(super) fn pop(&self) -> Result<Result<Entries, NotListed>, Vec<u8>> {
        let mut state = self.lock();
        loop {
            let last = state.dirs.pop().unwrap_or_else(|| Listing::Unread(Vec::new()));
            state.entries -= last.len();
            match last {
                Listing::Unread(host) => {
                    state.unread.pop();
                    return Err(host);
                }
                Listing::Reading(host) if state.is_over => return Err(host),
                reading @ Listing::Reading(_) => {
                    state.dirs.push(reading);
                    state = self.wait(state);
                }
                Listing::Read(entries) => {
                    self.changed.notify_all();
                    return Ok(entries);
                }
            }
        }
    }

    /// Ends all threads when dropped, also by a panic, for which nobody waits.
    pub(super) fn end_on_drop(&self) -> EndOnDrop<'_> {
        EndOnDrop(self)
    }

    fn work(&self, root: &OwnedFd, mut looker: Looker) {
        let ends = self.end_on_drop();
        while let Some((index, host)) = self.next() {
            let listing = Listing::Read(looker.list(root, &host));
            let mut state = self.lock();
            if let Some(dir @ Listing::Reading(_)) = state.dirs.get_mut(index) {
                let len = listing.len();
                *dir = listing;
                state.entries += len;
            }
            self.changed.notify_all();
        }
        std::mem::forget(ends);
    }

    fn next(&self) -> Option<(usize, Vec<u8>)> {
        let mut state = self.lock();
        while !state.is_over {
            // The last one is left to the scan, which would wait for it.
            let at = state.unread.len().saturating_sub(2);
            let has_room = state.entries < ENTRIES_MAX;
            let next =
                state.unread.get(at).copied().filter(|index| has_room || state.dirs.len() - index <= SOON);
            if let Some(index) = next
                && let Listing::Unread(host) = &state.dirs[index]
            {
                let host = host.clone();
                state.unread.remove(at);
                state.dirs[index] = Listing::Reading(host.clone());
                return Some((index, host));
            }
            state = self.wait(state);
        }
        None
    }
}

pub(super) struct EndOnDrop<'a>(&'a Ahead);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    fn names(entries: Result<Entries, NotListed>) -> Result<Vec<CString>, rustix::io::Errno> {
        Ok(entries.map_err(|not| not.error)?.into_iter().map(|(name, _)| name).collect())
    }

    #[test]
    fn directories_are_those_that_the_scan_would_read() {
        let folder = tempfile::tempdir().unwrap();
        for dir in 0..500 {
            let dir = folder.path().join(dir.to_string());
            std::fs::create_dir(&dir).unwrap();
            (0..dir.as_os_str().len() % 7)
                .for_each(|file| std::fs::write(dir.join(file.to_string()), "").unwrap());
        }
        let root: OwnedFd = std::fs::File::open(folder.path()).unwrap().into();
        let (ahead, mut looker) = (Ahead::default(), Looker::new(false));
        let spare = looker.clone();
        std::thread::scope(|scope| {
            let _ends = ahead.end_on_drop();
            let hosts = |range: std::ops::Range<u32>| range.map(|dir| dir.to_string().into_bytes()).collect();
            // The last is missing.
            ahead.push(hosts(0..450));
            ahead.start(scope, &root, &spare);
            ahead.push(hosts(450..501));
            for dir in (0..501).rev() {
                let host = dir.to_string().into_bytes();
                let read = ahead.pop().unwrap_or_else(|unread| {
                    assert_eq!(unread, host);
                    looker.list(&root, &unread)
                });
                assert_eq!(names(read), names(looker.list(&root, &host)), "{dir}");
            }
            let state = ahead.lock();
            assert_eq!((state.dirs.len(), state.entries, state.unread.len()), (0, 0, 0));
            drop(state);
            // Threads end while directories are unread.
            ahead.push(hosts(0..400));
        });
    }
}

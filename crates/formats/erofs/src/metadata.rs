//! Bytes of metadata by place: windows of the address space, kept for a while, so that inodes and names that lie together
//! are read together.
//!
//! Owns a bounded cache of windows. Whoever goes from one window to the next has several read at once. Knows no structure;
//! whoever reads says what it reads for messages.

use crate::corruption::{Corruption, Place};
use crate::reader::Reader;
use packfs_core::{Result, usize_of};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of a window.
const WINDOW_LEN: u64 = 16 << 10;
/// Most windows that are read at once.
const RUN_MAX: u64 = 4;
/// A window so many behind the last one that was read goes on there.
const SKIP_MAX: u64 = 2;
/// 64 sets of 4 windows of 16 KiB make 4 MiB.
const SET_COUNT: u64 = 64;
const SET_LEN: usize = 4;

/// Windows that share a place, each with its number; the one used last stands last.
type Set = Vec<(u64, Arc<Vec<u8>>)>;

/// Windows by number.
pub(crate) struct Windows {
    sets: Vec<Mutex<Set>>,
    walk: Mutex<Walk>,
}

/// Where windows were read last.
#[derive(Default)]
struct Walk {
    /// The number behind the last window.
    next: u64,
    /// How many were read at once.
    run: u64,
}

impl Walk {
    /// How many windows to read for whoever misses one.
    fn run_at(&mut self, number: u64) -> u64 {
        let goes_on = (self.next..=self.next.saturating_add(SKIP_MAX)).contains(&number);
        self.run = if goes_on { (self.run * 2).clamp(1, RUN_MAX) } else { 1 };
        self.next = number.saturating_add(self.run);
        self.run
    }
}

impl Default for Windows {
    fn default() -> Self {
        let sets = (0..SET_COUNT).map(|_| Mutex::default()).collect();
        Windows { sets, walk: Mutex::default() }
    }
}

impl Windows {
    fn set(&self, number: u64) -> Option<MutexGuard<'_, Set>> {
        let set = self.sets.get((number % SET_COUNT) as usize)?;
        Some(set.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn get(&self, number: u64) -> Option<Arc<Vec<u8>>> {
        let mut set = self.set(number)?;
        let index = set.iter().rposition(|(found, _)| *found == number)?;
        let row = set.remove(index);
        let bytes = Arc::clone(&row.1);
        set.push(row);
        Some(bytes)
    }

    fn put(&self, number: u64, bytes: &Arc<Vec<u8>>) {
        let Some(mut set) = self.set(number) else { return };
        set.retain(|(found, _)| *found != number);
        if set.len() >= SET_LEN {
            set.remove(0);
        }
        set.push((number, Arc::clone(bytes)));
    }

    fn run_at(&self, number: u64) -> u64 {
        self.walk.lock().unwrap_or_else(PoisonError::into_inner).run_at(number)
    }
}

impl Reader {
    /// The window that holds `at`, and where it starts. It may end early, at the end of what there is.
    pub(crate) fn window(&self, at: u64) -> Result<(u64, Arc<Vec<u8>>)> {
        let number = at / WINDOW_LEN;
        let start = number * WINDOW_LEN;
        if let Some(bytes) = self.windows.get(number) {
            return Ok((start, bytes));
        }
        let run = match self.windows.run_at(number) {
            1 => None,
            // What lies behind the window that is wanted may be damaged, or the metabox, which is for others to hear of.
            run => self.read_windows(start, run).ok(),
        };
        let bytes = match run {
            Some(bytes) => bytes,
            None => self.read_windows(start, 1)?,
        };
        if bytes.len() <= usize_of(WINDOW_LEN) {
            let only = Arc::new(bytes);
            self.windows.put(number, &only);
            return Ok((start, only));
        }
        let mut windows = bytes.chunks(usize_of(WINDOW_LEN));
        let first = Arc::new(windows.next().unwrap_or_default().to_vec());
        self.windows.put(number, &first);
        for (number, window) in (number + 1..).zip(windows) {
            self.windows.put(number, &Arc::new(window.to_vec()));
        }
        Ok((start, first))
    }

    /// Up to `count` windows; fewer bytes only where there are no more.
    fn read_windows(&self, start: u64, count: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize_of(count * WINDOW_LEN)];
        let len = self.read_space(start, &mut bytes)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Fills `out` from a place of the address space.
    ///
    /// Errors: `Corrupt` if there are not so many bytes.
    pub(crate) fn read_metadata(&self, at: u64, out: &mut [u8], place: Place) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let from = at.saturating_add(done as u64);
            let (start, window) = self.window(from)?;
            let rest = window.get(usize_of(from - start)..).unwrap_or_default();
            let len = rest.len().min(out.len() - done);
            let (Some(source), Some(target)) = (rest.get(..len), out.get_mut(done..done + len)) else {
                break;
            };
            if len == 0 {
                let (len, end) = (out.len() as u64, self.space_end());
                return Err(Corruption::Outside { place, what: "the image", start: at, len, end }.into());
            }
            target.copy_from_slice(source);
            done += len;
        }
        Ok(())
    }

    /// Reads one structure.
    pub(crate) fn read_struct<T: FromBytes + IntoBytes>(&self, at: u64, place: Place) -> Result<T> {
        let mut value = T::new_zeroed();
        self.read_metadata(at, value.as_mut_bytes(), place)?;
        Ok(value)
    }
}

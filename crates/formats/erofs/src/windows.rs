//! A bounded cache of windows of the address space.

use packfs_core::usize_of;
use packfs_format::units::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) const WINDOW_LEN: u64 = 16 << 10;
const RUN_MAX: u64 = 4;
/// Largest gap between windows that still counts as sequential.
const SKIP_MAX: u64 = 2;
/// 64 sets of 4 windows of 16 KiB: 4 MiB.
const SET_COUNT: u64 = 64;
const SET_LEN: usize = 4;

const SET_BYTES: u64 = SET_LEN as u64 * WINDOW_LEN;

/// Windows of one set, each with its number; the most recently used is the last.
type Set = Vec<(u64, Arc<Vec<u8>>)>;

pub(crate) struct Windows {
    sets: Vec<Mutex<Set>>,
    /// Number of sets in use.
    set_count: AtomicU64,
    walk: Mutex<Walk>,
}

/// State of sequential reading.
#[derive(Default)]
struct Walk {
    next: u64,
    run: u64,
}

impl Walk {
    /// Returns the number of windows to read on a miss.
    fn run_at(&mut self, number: u64) -> u64 {
        let goes_on = (self.next..=self.next.plus(SKIP_MAX)).contains(&number);
        self.run = if goes_on { self.run.times(2).clamp(1, RUN_MAX) } else { 1 };
        self.next = number.plus(self.run);
        self.run
    }
}

impl Default for Windows {
    fn default() -> Self {
        let sets = (0..SET_COUNT).map(|_| Mutex::default()).collect();
        Windows { sets, set_count: AtomicU64::new(SET_COUNT), walk: Mutex::default() }
    }
}

impl Windows {
    /// Drops all windows, and bounds the cache to about `len_max` bytes.
    pub(crate) fn keep_at_most(&self, len_max: usize) {
        let count = len_max as u64 / SET_BYTES;
        self.set_count.store(count.clamp(1, SET_COUNT), Ordering::Relaxed);
        self.sets.iter().for_each(|set| *set.lock().unwrap_or_else(PoisonError::into_inner) = Set::new());
    }

    fn set(&self, number: u64) -> Option<MutexGuard<'_, Set>> {
        let number = number.checked_rem(self.set_count.load(Ordering::Relaxed))?;
        let set = self.sets.get(usize_of(number))?;
        Some(set.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn get(&self, number: u64) -> Option<Arc<Vec<u8>>> {
        let mut set = self.set(number)?;
        let index = set.iter().rposition(|(found, _)| *found == number)?;
        let row = set.remove(index);
        let bytes = Arc::clone(&row.1);
        set.push(row);
        Some(bytes)
    }

    pub(crate) fn put(&self, number: u64, bytes: &Arc<Vec<u8>>) {
        let Some(mut set) = self.set(number) else { return };
        set.retain(|(found, _)| *found != number);
        if set.len() >= SET_LEN {
            set.remove(0);
        }
        set.push((number, Arc::clone(bytes)));
    }

    pub(crate) fn run_at(&self, number: u64) -> u64 {
        self.walk.lock().unwrap_or_else(PoisonError::into_inner).run_at(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_drops_what_is_kept_and_holds_from_then_on() {
        let windows = Windows::default();
        let kept = || {
            (0..1000).for_each(|number| windows.put(number, &Arc::default()));
            (0..1000).filter(|&number| windows.get(number).is_some()).count()
        };
        assert_eq!(kept(), 256);
        windows.keep_at_most(0);
        assert!((0..1000).all(|number| windows.get(number).is_none()));
        assert_eq!(kept(), SET_LEN);
        windows.keep_at_most(128 << 10);
        assert_eq!(kept(), 8);
    }
}

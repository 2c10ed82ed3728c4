//! A bounded cache of windows of the address space.

use packfs_core::usize_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a window.
pub(crate) const WINDOW_LEN: u64 = 16 << 10;
/// Most windows that are read at once.
const RUN_MAX: u64 = 4;
/// A window so many after the last one that was read goes on there.
const SKIP_MAX: u64 = 2;
/// 64 sets of 4 windows of 16 KiB make 4 MiB.
const SET_COUNT: u64 = 64;
const SET_LEN: usize = 4;

/// Bytes of a set.
const SET_BYTES: u64 = SET_LEN as u64 * WINDOW_LEN;

/// Windows that share a place, each with its number; the one used last stands last.
type Set = Vec<(u64, Arc<Vec<u8>>)>;

/// Windows by number.
pub(crate) struct Windows {
    sets: Vec<Mutex<Set>>,
    /// Sets in use.
    set_count: AtomicU64,
    walk: Mutex<Walk>,
}

/// End of the last sequential read.
#[derive(Default)]
struct Walk {
    /// The number after the last window.
    next: u64,
    /// Number of windows of the last read.
    run: u64,
}

impl Walk {
    /// Returns the number of windows to read on a miss.
    fn run_at(&mut self, number: u64) -> u64 {
        let goes_on = (self.next..=self.next.saturating_add(SKIP_MAX)).contains(&number);
        self.run = if goes_on { self.run.saturating_mul(2).clamp(1, RUN_MAX) } else { 1 };
        self.next = number.saturating_add(self.run);
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
    /// Drops all windows, and keeps about so many bytes of them from now on.
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

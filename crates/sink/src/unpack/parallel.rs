//! Distributes many small tasks over a few threads.

use packfs_core::Result;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Items that a thread takes at a time: neighbors are mostly in the same directory.
const TAKEN_AT_ONCE: usize = 64;
/// Fewer items than this are not worth a thread.
const ITEMS_MIN: usize = 256;

pub(super) struct Share<'a, T> {
    items: &'a [T],
    next: &'a AtomicUsize,
    taken: std::slice::Iter<'a, T>,
}

impl<'a, T> Share<'a, T> {
    pub(super) fn next(&mut self) -> Option<&'a T> {
        if let Some(item) = self.taken.next() {
            return Some(item);
        }
        let start = self.next.fetch_add(TAKEN_AT_ONCE, Ordering::Relaxed).min(self.items.len());
        let end = start.saturating_add(TAKEN_AT_ONCE).min(self.items.len());
        self.taken = self.items[start..end].iter();
        self.taken.next()
    }
}

/// Returns the sum of the results of `work`. After an error the other threads stop at their next
/// item.
pub(super) fn count<T: Sync>(
    items: &[T],
    jobs: usize,
    work: impl Fn(&mut Share<'_, T>) -> Result<u64> + Sync,
) -> Result<u64> {
    let next = AtomicUsize::new(0);
    let run = || {
        let outcome = work(&mut Share { items, next: &next, taken: [].iter() });
        if outcome.is_err() {
            next.store(items.len(), Ordering::Relaxed);
        }
        outcome
    };
    if jobs <= 1 || items.len() < ITEMS_MIN {
        return run();
    }
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..jobs).map(|_| scope.spawn(run)).collect();
        let mut outcome = run();
        for other in others {
            let theirs = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            outcome = outcome.and_then(|own| theirs.map(|theirs| own + theirs));
        }
        outcome
    })
}

/// Bounded by this process's limit of open descriptors.
pub(super) fn descriptors_a_worker(jobs: usize) -> usize {
    const ASSUMED_LIMIT: u64 = 256;
    let limit =
        rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(ASSUMED_LIMIT);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // Half of them for directories, a quarter for files; the rest for other purposes.
    (limit / 4 / jobs.saturating_add(2)).clamp(2, 128)
}

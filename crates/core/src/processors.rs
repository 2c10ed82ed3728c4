//! Threads: their number for a number of jobs, and the division of work among them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most threads that an option may request.
const JOBS_MAX: usize = 1024;

/// Returns the number of threads for `jobs`: one per CPU for 0, and at most 1024.
pub fn thread_count(jobs: usize) -> usize {
    if jobs == 0 { processor_count() } else { jobs.min(JOBS_MAX) }
}

/// Returns the number of processors that this process may use, at least 1. Cached, because the
/// system reads a dozen files of control groups.
pub fn processor_count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Calls a function for each item, on as many threads as there are states, of which each call has
/// one. Results are in the order of items. If threads or memory are short, fewer threads do the
/// same.
pub fn in_parallel<S: Send, T: Sync, R: Send>(
    states: &mut [S],
    items: &[T],
    f: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = |state: &mut S| {
        let mut done = Vec::new();
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(index)
        {
            done.push((index, f(state, item)));
        }
        done
    };
    let Some((first, others)) = states.split_first_mut() else { return Vec::new() };
    let mut done = std::thread::scope(|scope| {
        let work = &work;
        let start = |state| std::thread::Builder::new().spawn_scoped(scope, move || work(state)).ok();
        let others: Vec<_> = others.iter_mut().take(items.len().saturating_sub(1)).map_while(start).collect();
        let mut done = work(first);
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_threads_within_limits() {
        assert_eq!(thread_count(3), 3);
        assert_eq!(thread_count(usize::MAX), JOBS_MAX);
        assert!(thread_count(0) >= 1);
    }
}

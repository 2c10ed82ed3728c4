//! The number of threads that a number of jobs stands for.

use std::sync::OnceLock;

/// Threads that any option may ask for.
const JOBS_MAX: usize = 1024;

/// The number of threads for `jobs`: one a processor for 0, and at most 1024.
///
/// # Examples
///
/// ```
/// assert_eq!(packfs_core::thread_count(3), 3);
/// assert!(packfs_core::thread_count(0) >= 1);
/// ```
pub fn thread_count(jobs: usize) -> usize {
    if jobs == 0 { processor_count() } else { jobs.min(JOBS_MAX) }
}

/// The processors that this process may use, at least 1.
///
/// They are counted once: an answer takes the reading of a dozen files of control groups.
pub fn processor_count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

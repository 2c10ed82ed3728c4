//! Number of threads for a number of jobs.

use std::sync::OnceLock;

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

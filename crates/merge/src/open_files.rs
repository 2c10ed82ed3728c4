//! Limit of open files: every input of a merge stays open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Allowance for other open files of the process.
const OTHERS: u64 = 64;

/// Raises the limit of open files by `count`, if the system permits it: most allow 1,024 at first
/// and about 100,000 on request. Exceeding the limit fails when the file is opened.
pub fn allow_open_files(count: usize) {
    let wanted = (count as u64).saturating_add(OTHERS);
    let mut limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    if limit.current.is_some_and(|current| current < wanted.min(most)) {
        limit.current = Some(wanted.min(most));
        // A failure leaves the limit unchanged.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_rises_as_far_as_the_system_permits_and_never_falls() {
        let before = getrlimit(Resource::Nofile);
        allow_open_files(1);
        assert_eq!(getrlimit(Resource::Nofile).current, before.current);
        allow_open_files(usize::MAX);
        let after = getrlimit(Resource::Nofile);
        assert_eq!((after.current, after.maximum), (before.maximum, before.maximum));
    }
}

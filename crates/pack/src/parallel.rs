//! Runs a function on many items, on all workers.

use crate::PackOptions;
use packfs_core::{Error, Progress, Result};
use std::thread::Scope;

/// Results are in the order of items.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    options: &PackOptions,
    progress: &dyn Progress,
    items: &[T],
    f: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<Result<R>>> {
    let mut threads = vec![(); packfs_core::thread_count(options.jobs)];
    let results = packfs_core::in_parallel(&mut threads, items, |(), item| {
        if progress.cancelled() { None } else { Some(f(item)) }
    });
    results.into_iter().collect::<Option<_>>().ok_or_else(Error::cancelled)
}

/// A read error gives `None` if unreadable files are allowed. Otherwise it ends the work, because a
/// later read might succeed and change the image.
pub(crate) fn read_in_parallel<T: Sync, R: Send>(
    options: &PackOptions,
    progress: &dyn Progress,
    items: &[T],
    f: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<Option<R>>> {
    let learnt = in_parallel(options, progress, items, f)?.into_iter();
    learnt
        .map(|result| match result {
            Ok(known) => Ok(Some(known)),
            Err(_) if options.keep_going => Ok(None),
            Err(error) => Err(error),
        })
        .collect()
}

/// Returns false if no further thread can be started, but an earlier one exists.
pub(crate) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    number: usize,
    work: impl FnOnce() + Send + 'scope,
) -> Result<bool> {
    match std::thread::Builder::new().spawn_scoped(scope, work) {
        Ok(_) => Ok(true),
        Err(_) if number > 0 => Ok(false),
        Err(error) => Err(Error::io("cannot start a thread", error)
            .hint("the number of processes (ulimit -u) or the memory (ulimit -v) may be limited")),
    }
}

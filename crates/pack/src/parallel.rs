//! Runs a function on many items, on all workers.

use crate::PackOptions;
use packfs_core::{Error, Progress, Result};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Scope;

/// Results are in the order of items.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    options: &PackOptions,
    progress: &dyn Progress,
    items: &[T],
    f: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<Result<R>>> {
    let next = AtomicUsize::new(0);
    let stopped = AtomicBool::new(false);
    let worker = || {
        let mut done = Vec::new();
        while let Some((index, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?)))
        {
            if progress.cancelled() {
                stopped.store(true, Ordering::Relaxed);
                break;
            }
            done.push((index, f(item)));
        }
        done
    };
    let mut done = std::thread::scope(|scope| {
        let count = packfs_core::thread_count(options.jobs).min(items.len());
        // If threads or memory are short, fewer workers do the same.
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, worker).ok();
        let others: Vec<_> = (1..count).map_while(start).collect();
        let mut done = worker();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    if stopped.load(Ordering::Relaxed) {
        return Err(Error::cancelled());
    }
    done.sort_unstable_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// A read error gives `None` if unreadable files are allowed. Otherwise it ends the work, because a
/// later read might succeed and change the image.
/// image.
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

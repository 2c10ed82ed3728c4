//! Work on several threads with results in the order of the items.
//!
//! Idle workers take the next item; early results wait for those before. The number of waiting
//! results is limited, so memory does not grow with the number of items.

use packfs_core::{Error, Progress, Result};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Most waiting results for each worker.
const WAITING_A_WORKER: usize = 8;

/// Calls `work` for each item on `jobs` threads, each with a separate scratch, and `take` for each
/// result, in the order of items, on the calling thread.
///
/// Errors: the first in that order, of items, `work` or `take`; `Cancelled`.
pub fn in_order<I: Send, S, R: Send>(
    jobs: usize,
    items: impl Iterator<Item = Result<I>> + Send,
    progress: &dyn Progress,
    scratch: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &I) -> Result<R> + Sync,
    take: &mut dyn FnMut(I, R) -> Result<()>,
) -> Result<()> {
    let workers = packfs_core::thread_count(jobs);
    if workers == 1 {
        let mut scratch = scratch();
        for item in items {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            let item = item?;
            let result = work(&mut scratch, &item)?;
            take(item, result)?;
        }
        return Ok(());
    }
    let source = Mutex::new((items, 0_u64));
    let waiting = Waiting::new(workers);
    let next = || {
        let mut source = lock(&source);
        let item = source.0.next()?;
        source.1 += 1;
        Some((source.1 - 1, item))
    };
    let worker = || {
        let _leaving = Leaving(&waiting);
        let mut scratch = scratch();
        while let Some((index, item)) = next() {
            let done = item.and_then(|item| work(&mut scratch, &item).map(|result| (item, result)));
            if !waiting.put(index, done) {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(worker);
        }
        // Releases waiting workers in any case.
        let _stopping = Stopping(&waiting);
        while let Some(done) = waiting.take() {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            let (item, result) = done?;
            take(item, result)?;
        }
        Ok(())
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Waiting<T> {
    state: Mutex<State<T>>,
    room_max: usize,
    /// Signals a new result, or the end of the last worker.
    ready: Condvar,
    /// Signals free space, or the end of the receiver.
    room: Condvar,
}

struct State<T> {
    /// Starts with the next result to be taken.
    results: VecDeque<Option<Result<T>>>,
    taken: u64,
    workers: usize,
    stopped: bool,
}

impl<T> Waiting<T> {
    fn new(workers: usize) -> Self {
        let state = State { results: VecDeque::new(), taken: 0, workers, stopped: false };
        let room_max = workers * WAITING_A_WORKER;
        Waiting { state: Mutex::new(state), room_max, ready: Condvar::new(), room: Condvar::new() }
    }

    /// Waits for space; returns false if the receiver has ended.
    fn put(&self, index: u64, result: Result<T>) -> bool {
        let mut state = lock(&self.state);
        // There is always space for the next result to be taken.
        while !state.stopped && (index - state.taken) as usize >= self.room_max {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.stopped {
            return false;
        }
        let place = (index - state.taken) as usize;
        if state.results.len() <= place {
            state.results.resize_with(place + 1, || None);
        }
        state.results[place] = Some(result);
        if place == 0 {
            self.ready.notify_one();
        }
        true
    }

    /// Results come in order; `None` at the end.
    fn take(&self) -> Option<Result<T>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(Some(_)) = state.results.front() {
                state.taken += 1;
                self.room.notify_all();
                return state.results.pop_front().flatten();
            }
            if state.workers == 0 {
                return None;
            }
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Also runs after a panic.
struct Leaving<'a, T>(&'a Waiting<T>);

impl<T> Drop for Leaving<'_, T> {
    fn drop(&mut self) {
        lock(&self.0.state).workers -= 1;
        self.0.ready.notify_one();
    }
}

struct Stopping<'a, T>(&'a Waiting<T>);

impl<T> Drop for Stopping<'_, T> {
    fn drop(&mut self) {
        lock(&self.0.state).stopped = true;
        self.0.room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::Silent;

    #[test]
    fn results_come_in_order() {
        for jobs in [1, 2, 7] {
            let mut taken = Vec::new();
            let items = (0..1000_u32).map(Ok);
            let work = |_: &mut (), item: &u32| {
                if item.is_multiple_of(37) {
                    std::thread::yield_now();
                }
                Ok(item * 2)
            };
            in_order(jobs, items, &Silent, || (), work, &mut |item, result| {
                taken.push((item, result));
                Ok(())
            })
            .unwrap();
            assert!(taken.iter().copied().eq((0..1000).map(|item| (item, item * 2))), "{jobs}");
        }
    }

    #[test]
    fn returns_the_first_error_in_order() {
        for jobs in [1, 4] {
            let items =
                (0..1000_u32).map(|item| if item == 600 { Err(Error::failed("600")) } else { Ok(item) });
            let work = |_: &mut (), item: &u32| {
                if *item >= 500 { Err(Error::failed(item)) } else { Ok(()) }
            };
            let mut count = 0;
            let outcome = in_order(jobs, items, &Silent, || (), work, &mut |_, ()| {
                count += 1;
                Ok(())
            });
            assert_eq!((outcome.unwrap_err().to_string(), count), ("500".to_owned(), 500), "{jobs}");
            let items = (0..1000_u32).map(Ok);
            let refused = in_order(jobs, items, &Silent, || (), |_, _| Ok(()), &mut |item, ()| match item {
                3 => Err(Error::failed("no more")),
                _ => Ok(()),
            });
            assert_eq!(refused.unwrap_err().to_string(), "no more");
        }
    }
}

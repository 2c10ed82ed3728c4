//! The slot of a block: decoded by one reader, while all others that want it wait.
//!
//! Invariant: at most one attempt runs at a time. Every thread that waits gets its result. A
//! failure is then forgotten, so the next request tries again. Requests may want prefixes of
//! different lengths: the longest decoded one is kept and serves the shorter ones.

use crate::block::{self, Decoded, Place};
use crate::counters::Tally;
use packfs_codec::BlockRef;
use packfs_core::{Error, Result};
use packfs_format::units::*;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Never requested.
const UNKNOWN: u8 = 0;
/// Requested ahead of need.
const AHEAD: u8 = 1;
/// Wanted by a reader.
const WANTED: u8 = 2;

pub(crate) struct Slot {
    place: Place,
    interest: AtomicU8,
    /// Bytes used; repeated uses are added.
    used_len: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    decoded: Option<Arc<Decoded>>,
    busy: bool,
    attempt: u64,
    /// Threads that wait for the current attempt; usually none, and a needless wakeup costs a
    /// system call.
    waiting: usize,
    /// Number, block and error of the last failed attempt.
    failed: Option<(u64, BlockRef, Error)>,
}

pub(crate) enum Answer<'a> {
    Decoded(Arc<Decoded>),
    Ours(Attempt<'a>),
    /// Another thread is decoding: call [`Slot::wait`] with this attempt.
    Busy(u64),
}

impl Slot {
    pub(crate) fn new(place: Place) -> Self {
        Slot {
            place,
            interest: AtomicU8::new(UNKNOWN),
            used_len: AtomicU64::new(0),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, state: MutexGuard<'_, State>) {
        let is_awaited = state.waiting > 0;
        drop(state);
        if is_awaited {
            self.changed.notify_all();
        }
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Never waits.
    ///
    /// Errors: `Corrupt` if the block decodes to another length than expected.
    pub(crate) fn ask(&self, wanted: &BlockRef) -> Result<Answer<'_>> {
        let mut state = self.lock();
        if let Some(decoded) = state.answer(wanted)? {
            return Ok(Answer::Decoded(decoded));
        }
        if state.busy {
            return Ok(Answer::Busy(state.attempt));
        }
        Ok(Answer::Ours(self.begin(&mut state)))
    }

    fn begin(&self, state: &mut State) -> Attempt<'_> {
        state.busy = true;
        state.attempt += 1;
        Attempt { slot: self, is_open: true }
    }

    /// `None` if the attempt did not serve this request, so the caller must request the block
    /// again.
    pub(crate) fn wait(
        &self,
        wanted: &BlockRef,
        attempt: u64,
        tally: &Tally,
    ) -> Result<Option<Arc<Decoded>>> {
        let start = Instant::now();
        let mut state = self.lock();
        state.waiting += 1;
        while state.busy && state.attempt == attempt {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting -= 1;
        tally.waited(start);
        match &state.failed {
            Some((failed, block, error)) if *failed == attempt && block == wanted => Err(error.clone()),
            _ => state.answer(wanted),
        }
    }

    /// `None` if the block is decoded, or in progress.
    pub(crate) fn take_ahead(&self, wanted: &BlockRef) -> Option<Attempt<'_>> {
        let mut state = self.lock();
        let idle = !state.busy && matches!(state.answer(wanted), Ok(None));
        idle.then(|| self.begin(&mut state))
    }

    /// Returns true if the block was never requested before.
    pub(crate) fn ask_ahead(&self) -> bool {
        self.interest.compare_exchange(UNKNOWN, AHEAD, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns true if the block was not wanted before.
    pub(crate) fn want(&self, tally: &Tally) -> bool {
        if self.interest.load(Ordering::Relaxed) == WANTED {
            return false;
        }
        let before = self.interest.swap(WANTED, Ordering::Relaxed);
        if before == AHEAD && self.is_decoded() {
            tally.ahead_used.add(1);
        }
        before != WANTED
    }

    pub(crate) fn is_ahead(&self) -> bool {
        self.interest.load(Ordering::Relaxed) == AHEAD
    }

    pub(crate) fn is_decoded(&self) -> bool {
        self.lock().decoded.is_some()
    }

    /// Returns true if these bytes were the last of `total`.
    pub(crate) fn use_up(&self, len: u64, total: u64) -> bool {
        let before = self.used_len.fetch_add(len, Ordering::Relaxed);
        before < total && end_of(before, len) >= total
    }
}

impl State {
    fn answer(&self, wanted: &BlockRef) -> Result<Option<Arc<Decoded>>> {
        let Some(decoded) = &self.decoded else { return Ok(None) };
        Ok(block::is_enough(decoded, wanted).then(|| Arc::clone(decoded)))
    }
}

/// Right and duty to decode a block. Dropped without a result (a panic), it lets others try.
pub(crate) struct Attempt<'a> {
    slot: &'a Slot,
    is_open: bool,
}

impl<'a> Attempt<'a> {
    pub(crate) fn slot(&self) -> &'a Slot {
        self.slot
    }

    pub(crate) fn finish(mut self, wanted: &BlockRef, outcome: Result<Decoded>) -> Result<Arc<Decoded>> {
        self.is_open = false;
        let outcome = outcome.map(Arc::new);
        let mut state = self.slot.lock();
        state.busy = false;
        match &outcome {
            Ok(decoded) => (state.decoded, state.failed) = (Some(Arc::clone(decoded)), None),
            Err(error) => state.failed = Some((state.attempt, *wanted, error.clone())),
        }
        self.slot.wake(state);
        outcome
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let mut state = self.slot.lock();
            state.busy = false;
            self.slot.wake(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> BlockRef {
        BlockRef { decoded_len: 0, ..BlockRef::stored(0, 0) }
    }

    /// Blocks until `count` threads wait for `slot`.
    fn until_waiting(slot: &Slot, count: usize) {
        while slot.lock().waiting < count {
            std::thread::yield_now();
        }
    }

    #[test]
    fn all_waiting_threads_get_the_result() {
        let (slot, tally) = (Slot::new(Place::of(&block())), Tally::default());
        let Answer::Ours(attempt) = slot.ask(&block()).unwrap() else { panic!("nobody is at it") };
        let Answer::Busy(number) = slot.ask(&block()).unwrap() else { panic!("somebody is at it") };
        std::thread::scope(|scope| {
            let waiting: Vec<_> =
                (0..3).map(|_| scope.spawn(|| slot.wait(&block(), number, &tally).is_err())).collect();
            until_waiting(&slot, 3);
            assert!(attempt.finish(&block(), Err(Error::failed("damaged"))).is_err());
            assert!(waiting.into_iter().all(|thread| thread.join().unwrap()));
        });
        assert_eq!(slot.lock().waiting, 0);
    }

    #[test]
    fn an_abandoned_attempt_lets_others_try() {
        let (slot, tally) = (Slot::new(Place::of(&block())), Tally::default());
        let Answer::Ours(attempt) = slot.ask(&block()).unwrap() else { panic!("nobody is at it") };
        let Answer::Busy(number) = slot.ask(&block()).unwrap() else { panic!("somebody is at it") };
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| slot.wait(&block(), number, &tally).unwrap().is_none());
            until_waiting(&slot, 1);
            drop(attempt);
            assert!(waiting.join().unwrap());
        });
        assert!(matches!(slot.ask(&block()), Ok(Answer::Ours(_))));
    }
}

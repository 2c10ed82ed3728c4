//! The contents of a simulated device: what is behind it, no sooner than the model says.

use crate::backing::Store;
use crate::model::{Due, Model, Operation, Request, Statistics, Ticket};
use crate::path_cost::PathCost;
use crate::{DeviceSpec, Nanos, clock};
use packfs_mount::FileContents;
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Answers that are later than this count as late.
const LATE_MIN: Nanos = 100_000;
/// Longest sleep before a thread looks if its answer is still wanted: hours may be left when the
/// device is taken away.
const SLEEP_MAX: Duration = Duration::from_millis(50);

thread_local! {
    static IS_PUNCTUAL: Cell<bool> = const { Cell::new(false) };
}

pub(crate) struct Delayed {
    store: Store,
    model: Mutex<Model>,
    /// Time of the way to us and back; not known while it is measured.
    cost: OnceLock<PathCost>,
    is_immediate: AtomicBool,
    late: AtomicU64,
    lateness: AtomicU64,
}

impl Delayed {
    /// Answers at once until [`Delayed::begin`] is called.
    pub(crate) fn new(store: Store, spec: &DeviceSpec) -> Self {
        Delayed {
            store,
            model: Mutex::new(Model::new(spec)),
            cost: OnceLock::new(),
            is_immediate: AtomicBool::new(true),
            late: AtomicU64::new(0),
            lateness: AtomicU64::new(0),
        }
    }

    pub(crate) fn begin(&self, cost: PathCost) {
        let _ = self.cost.set(cost);
        self.is_immediate.store(false, Ordering::SeqCst);
    }

    /// Answers everything at once from now on, and pending requests within [`SLEEP_MAX`], because
    /// measuring is over.
    pub(crate) fn hurry(&self) {
        self.is_immediate.store(true, Ordering::SeqCst);
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let mut statistics = self.model().statistics();
        statistics.late = self.late.load(Ordering::Relaxed);
        statistics.lateness = self.lateness.load(Ordering::Relaxed);
        statistics
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `work` while the model's time passes, at least.
    fn delayed(
        &self,
        operation: Operation,
        offset: u64,
        len: u64,
        work: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        if self.is_immediate.load(Ordering::Relaxed) {
            return work();
        }
        if !IS_PUNCTUAL.replace(true) {
            clock::be_punctual();
        }
        let request = Request { operation, offset, len };
        let (inbound, outbound) = self.cost.get().copied().unwrap_or_default().of(&request);
        let ticket = self.model().submit(clock::now().saturating_sub(inbound), request);
        let outcome = work();
        self.wait(ticket, outbound);
        outcome
    }

    fn wait(&self, ticket: Ticket, outbound: Nanos) {
        while !self.is_immediate.load(Ordering::Relaxed) {
            let due = self.model().due(clock::now(), ticket);
            match due {
                Due::NotBefore(time) => self.sleep_until(time),
                Due::At(end) => {
                    let answer = end.saturating_sub(outbound);
                    self.sleep_until(answer);
                    let late = clock::now().saturating_sub(answer);
                    if late > LATE_MIN {
                        self.late.fetch_add(1, Ordering::Relaxed);
                        self.lateness.fetch_add(late, Ordering::Relaxed);
                    }
                    return;
                }
            }
        }
    }

    /// Returns at `time`, or soon after the last caller stops waiting.
    fn sleep_until(&self, time: Nanos) {
        while !self.is_immediate.load(Ordering::Relaxed) {
            let left = Duration::from_nanos(time.saturating_sub(clock::now()));
            if left <= SLEEP_MAX {
                return clock::sleep_until(time);
            }
            // The last stretch is the one that has to end to the point.
            std::thread::sleep((left - SLEEP_MAX).min(SLEEP_MAX));
        }
    }
}

impl FileContents for Delayed {
    fn len(&self) -> u64 {
        self.store.len()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let len = into.len() as u64;
        self.delayed(Operation::Read, offset, len, || self.store.read(offset, into))
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.delayed(Operation::Write, offset, bytes.len() as u64, || self.store.write(offset, bytes))
    }

    fn flush(&self) -> io::Result<()> {
        self.delayed(Operation::Flush, 0, 0, || Ok(()))
    }

    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        self.delayed(Operation::Discard, offset, len, || self.store.discard(offset, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Backing;

    /// Hours a request, so that a thread which sleeps to the end of one is noticed.
    const SLOW: &str = "name = \"slow\"\ntitle = \"for tests\"\n[medium]\ncapacity_mib = 1\nblock_bytes = 512\n[queue]\ndepth = 4\n\
                        channels = 1\nread_ahead_kib = 0\nmax_request_kib = 4\n[bus]\nmb_per_s = 100\n[read]\n\
                        latency_us = 3.6e10\nmb_per_s = 100\n";

    #[test]
    fn sleeping_requests_are_answered_after_measuring() {
        let spec = DeviceSpec::parse(SLOW, "slow").unwrap();
        let delayed = Delayed::new(Store::open(Backing::Blank(1 << 20), &spec).unwrap(), &spec);
        delayed.begin(PathCost::default());
        std::thread::scope(|scope| {
            let reads: Vec<_> = (0..3)
                .map(|index| {
                    scope.spawn({
                        let delayed = &delayed;
                        move || delayed.read(index * 4096, &mut [1; 4096])
                    })
                })
                .collect();
            while delayed.statistics().reads < 3 {
                std::thread::yield_now();
            }
            // They are told of their time by now, and sleep.
            std::thread::sleep(2 * SLEEP_MAX);
            assert!(reads.iter().all(|read| !read.is_finished()));
            delayed.hurry();
            assert!(reads.into_iter().all(|read| read.join().unwrap().is_ok()));
        });
        assert_eq!(delayed.statistics().late, 0);
    }
}

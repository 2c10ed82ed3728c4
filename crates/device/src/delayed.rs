//! The contents of a simulated device: what is behind it, no sooner than the model says.

use crate::backing::Store;
use crate::model::{Due, Model, Operation, Request, Ticket};
use crate::path_cost::PathCost;
use crate::statistics::Statistics;
use crate::{DeviceSpec, Nanos, clock};
use packfs_mount::FileContents;
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Answers that are later than this count as late.
const LATE_MIN: Nanos = 100_000;

thread_local! {
    static IS_PUNCTUAL: Cell<bool> = const { Cell::new(false) };
}

/// See the module.
pub(crate) struct Delayed {
    store: Store,
    model: Mutex<Model>,
    /// What the way to us and back takes anyway; not known while it is measured.
    cost: OnceLock<PathCost>,
    /// Nobody waits any more.
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

    /// From now on the model holds.
    pub(crate) fn begin(&self, cost: PathCost) {
        let _ = self.cost.set(cost);
        self.is_immediate.store(false, Ordering::SeqCst);
    }

    /// From now on everything is answered at once: nobody measures any more.
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
                Due::NotBefore(time) => clock::sleep_until(time),
                Due::At(end) => {
                    let answer = end.saturating_sub(outbound);
                    clock::sleep_until(answer);
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

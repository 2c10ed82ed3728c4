//! So many a second, and not more: what comes too soon waits.

use super::Nanos;

/// A limit without a reserve: what was not used is gone.
pub(super) struct Limit {
    /// Nanoseconds for each.
    each: f64,
    next: f64,
}

impl Limit {
    pub(super) fn new(per_second: f64) -> Self {
        Limit { each: 1e9 / per_second, next: 0.0 }
    }

    /// When `count` more may pass, if they come `now`.
    pub(super) fn admit(&mut self, now: Nanos, count: u64) -> Nanos {
        let start = self.next.max(now as f64);
        self.next = start + self.each * count as f64;
        start as Nanos
    }
}

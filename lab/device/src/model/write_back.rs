//! A cache that takes writes at once, and the work that it owes the medium.

use super::{Nanos, Request};

#[derive(Default)]
pub(super) struct WriteBack {
    work: Nanos,
    /// Bytes that wait for it.
    bytes: u64,
    until: Nanos,
    /// End of the last write.
    at: u64,
}

impl WriteBack {
    /// Has the medium work between the time from which it is idle and `now`.
    pub(super) fn work(&mut self, idle: Nanos, now: Nanos) {
        let from = self.until.max(idle);
        if now > from {
            self.done(now - from);
            self.until = now;
        }
    }

    fn done(&mut self, time: Nanos) {
        if time >= self.work {
            (self.work, self.bytes) = (0, 0);
        } else {
            let left = (self.work - time) as f64 / self.work as f64;
            self.bytes = (self.bytes as f64 * left) as u64;
            self.work -= time;
        }
    }

    /// When there is room for `len` bytes, at `start` or later; the medium is idle from `idle` on.
    pub(super) fn room(&mut self, start: Nanos, idle: Nanos, len: u64, capacity: u64) -> Nanos {
        let over = self.bytes.saturating_add(len).saturating_sub(capacity).min(self.bytes);
        if over == 0 {
            return start;
        }
        let wait = (self.work as f64 * over as f64 / self.bytes as f64) as Nanos;
        let from = self.until.max(idle).max(start);
        self.done(wait);
        self.until = from + wait;
        self.until
    }

    pub(super) fn add(&mut self, request: &Request, work: Nanos) {
        self.work = self.work.saturating_add(work);
        self.bytes = self.bytes.saturating_add(request.len);
        self.at = request.offset.saturating_add(request.len);
    }

    /// Does all that is owed from `start` on; when it is done.
    pub(super) fn empty(&mut self, start: Nanos) -> Nanos {
        let end = self.until.max(start) + self.work;
        *self = WriteBack { until: end, at: self.at, ..WriteBack::default() };
        end
    }

    /// Returns the distance from the last write, in bytes.
    pub(super) fn distance(&self, offset: u64) -> f64 {
        self.at.abs_diff(offset) as f64
    }

    pub(super) fn requests(&self, len: u64) -> f64 {
        1.0 + self.bytes as f64 / len.max(1) as f64
    }
}

//! Moving parts: a head over a medium that turns, and the buffer that it goes on filling while
//! idle.

use super::{Nanos, Operation, Request, span};
use crate::spec::{Access, DeviceSpec};
use packfs_host::Random;

#[derive(Default)]
pub(super) struct Heads {
    /// Up to where it was asked for.
    at: u64,
    since: Nanos,
    /// Place from which it read without a gap; the range up to `at` may still be in the buffer.
    from: u64,
    /// True if it goes on reading by itself: not after a write.
    reads_on: bool,
}

impl Heads {
    pub(super) fn distance(&self, offset: u64) -> u64 {
        self.at.abs_diff(offset)
    }

    /// Does a request that the drive begins to work at at `start`; when the medium is done with it.
    pub(super) fn access(
        &mut self,
        start: Nanos,
        request: &Request,
        access: &Access,
        spec: &DeviceSpec,
        random: &mut Random,
    ) -> Nanos {
        let end = request.offset.saturating_add(request.len);
        let rate = access.rate_at(request.offset as f64 / spec.medium.capacity as f64);
        let rotation = spec.seek.as_ref().map_or(0, |seek| seek.rotation);
        let seek = spec
            .seek
            .as_ref()
            .map_or(0, |seek| seek.time(self.distance(request.offset) as f64 / spec.medium.capacity as f64));
        let latency = random.vary(access.latency, spec.jitter);
        let turn = random.below(rotation);
        let afresh = start + latency + seek + turn + span(request.len, rate);
        let is_read = request.operation == Operation::Read;
        let streamed =
            if is_read { self.streamed(start, request, rate, turn, spec.read.buffer) } else { None };
        match streamed {
            Some((there, since)) if there <= afresh => {
                if end > self.at {
                    (self.at, self.since) = (end, since);
                }
                there
            }
            _ => {
                *self = Heads { at: end, since: afresh, from: request.offset, reads_on: is_read };
                afresh
            }
        }
    }

    /// When a read is there if the head just goes on, and when the head came by its end; `None`: it
    /// lies elsewhere.
    fn streamed(
        &self,
        start: Nanos,
        request: &Request,
        rate: f64,
        turn: Nanos,
        buffer: u64,
    ) -> Option<(Nanos, Nanos)> {
        let end = request.offset.saturating_add(request.len);
        let is_held = request.offset >= self.from.max(self.at.saturating_sub(buffer));
        if !self.reads_on || !is_held || request.offset > self.at.saturating_add(buffer) {
            return None;
        }
        if end <= self.at {
            return Some((start, self.since));
        }
        let ahead = end - self.at;
        let filled = self.since.saturating_add(span(buffer, rate));
        if start <= filled {
            let passed = self.since + span(ahead, rate);
            return Some((passed.max(start), passed));
        }
        // It stopped when the buffer was full.
        if ahead <= buffer {
            return Some((start, start.saturating_sub(span(buffer - ahead, rate))));
        }
        // And finds its place again within a turn.
        let there = start + turn + span(ahead - buffer, rate);
        Some((there, there))
    }
}

//! What a device was asked for.

use crate::model::{Nanos, Operation, Request};

/// Counts of a simulated device since it was attached. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Discards.
    pub discards: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Reads and writes that went on where an earlier one ended.
    pub sequential: u64,
    /// From the time that requests were let through the limits to their ends, summed up: nanoseconds of the model, not of a clock.
    pub service: Nanos,
    /// Requests under way when each came, itself among them, summed up.
    pub depth_sum: u64,
    /// The most of them.
    pub depth_max: u64,
    /// Requests that were answered more than a tenth of a millisecond later than the model says: the machine could not keep up.
    pub late: u64,
    /// By how much those were late, in nanoseconds, summed up.
    pub lateness: Nanos,
}

impl Statistics {
    /// All requests.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.flushes + self.discards
    }

    /// Which part of the reads and writes was sequential.
    pub fn sequential_share(&self) -> f64 {
        part(self.sequential, self.reads + self.writes)
    }

    /// Requests under way, on average over the requests.
    pub fn depth_mean(&self) -> f64 {
        part(self.depth_sum, self.requests())
    }

    /// Seconds of the model that requests took.
    pub fn service_seconds(&self) -> f64 {
        self.service as f64 / 1e9
    }

    pub(crate) fn count(&mut self, request: &Request, depth: u64, is_sequential: bool) {
        match request.operation {
            Operation::Read => {
                self.reads += 1;
                self.read_bytes += request.len;
                self.sequential += u64::from(is_sequential);
            }
            Operation::Write => {
                self.writes += 1;
                self.written_bytes += request.len;
                self.sequential += u64::from(is_sequential);
            }
            Operation::Flush => self.flushes += 1,
            Operation::Discard => self.discards += 1,
        }
        self.depth_sum += depth;
        self.depth_max = self.depth_max.max(depth);
    }
}

fn part(of: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { of as f64 / all as f64 }
}

//! Counts of requests.

use super::{Nanos, Operation, Request};

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
    /// Requests that were answered more than a tenth of a millisecond later than the model says:
    /// the machine could not keep up.
    pub late: u64,
    /// By how much those were late, in nanoseconds, summed up.
    pub lateness: Nanos,
}

impl Statistics {
    /// All requests.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.flushes + self.discards
    }

    pub(crate) fn count(&mut self, request: &Request) {
        match request.operation {
            Operation::Read => {
                self.reads += 1;
                self.read_bytes += request.len;
            }
            Operation::Write => {
                self.writes += 1;
                self.written_bytes += request.len;
            }
            Operation::Flush => self.flushes += 1,
            Operation::Discard => self.discards += 1,
        }
    }
}

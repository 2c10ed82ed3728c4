//! Requests that follow earlier ones.

use super::Request;

/// Sequences that are told apart at a time.
const STREAMS: usize = 8;
/// Farthest that a request may lie from the end of a sequence: several that were sent in order
/// overtake each other on their way through several threads.
const NEAR: u64 = 1 << 20;

#[derive(Default)]
pub(super) struct Streams {
    ends: [Option<u64>; STREAMS],
    next: usize,
}

impl Streams {
    /// True if a request goes on where an earlier one ended; it counts from now on.
    pub(super) fn follows(&mut self, request: &Request) -> bool {
        let end = request.offset.saturating_add(request.len);
        match self.find(request) {
            Some(index) => {
                self.ends[index] = self.ends[index].max(Some(end));
                true
            }
            None => {
                self.ends[self.next] = Some(end);
                self.next = (self.next + 1) % STREAMS;
                false
            }
        }
    }

    fn find(&self, request: &Request) -> Option<usize> {
        // Short ones are near when they are within a few of their own lengths.
        let near = NEAR.min(4 * request.len);
        self.ends.iter().position(|end| end.is_some_and(|end| end.abs_diff(request.offset) <= near))
    }
}

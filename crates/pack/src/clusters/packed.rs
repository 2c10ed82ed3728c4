//! The packed stream: tails of many files one behind the other, handed out in segments as they fill.

use std::mem;

/// See the module.
pub(super) struct PackedStream {
    segment_len: usize,
    /// Where `pending` starts in the stream.
    start: u64,
    pending: Vec<u8>,
}

impl PackedStream {
    /// `start`: how much of the stream is there already; the first segment ends where it would end without that.
    pub(super) fn new(segment_len: u64, start: u64) -> Self {
        PackedStream { segment_len: segment_len as usize, start, pending: Vec::new() }
    }

    /// How long the stream is.
    pub(super) fn len(&self) -> u64 {
        self.start + self.pending.len() as u64
    }

    /// Adds bytes and hands every segment that they fill to `full`; returns where they start.
    pub(super) fn append(&mut self, mut bytes: &[u8], mut full: impl FnMut(Vec<u8>)) -> u64 {
        let offset = self.len();
        while !bytes.is_empty() {
            let segment_len = self.segment_len - (self.start % self.segment_len as u64) as usize;
            let room = segment_len - self.pending.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.pending.extend_from_slice(now);
            bytes = later;
            if self.pending.len() == segment_len {
                self.start += self.pending.len() as u64;
                full(mem::take(&mut self.pending));
            }
        }
        offset
    }

    /// The last segment, if anything is left.
    pub(super) fn finish(&mut self) -> Option<Vec<u8>> {
        self.start = self.len();
        let rest = mem::take(&mut self.pending);
        (!rest.is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hands_out_whole_segments_and_then_the_rest() {
        let mut stream = PackedStream::new(10, 0);
        let mut segments: Vec<Vec<u8>> = Vec::new();
        let mut offsets = Vec::new();
        for (value, len) in [(1, 4), (2, 6), (3, 25), (4, 0), (5, 3)] {
            offsets.push(stream.append(&vec![value; len], |full| segments.push(full)));
        }
        segments.extend(stream.finish());
        assert_eq!(offsets, [0, 4, 10, 35, 35]);
        assert_eq!(segments.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 10, 8]);
        assert_eq!(segments.concat()[35..], [5, 5, 5]);
        assert!(stream.finish().is_none());
        assert_eq!(stream.len(), 38);
    }

    #[test]
    fn what_is_there_already_shortens_the_first_segment() {
        let mut stream = PackedStream::new(10, 23);
        let mut lens = Vec::new();
        assert_eq!(stream.append(&[1; 25], |full| lens.push(full.len())), 23);
        assert_eq!((lens, stream.finish().map(|rest| rest.len())), (vec![7, 10], Some(8)));
        assert_eq!(stream.len(), 48);
    }
}

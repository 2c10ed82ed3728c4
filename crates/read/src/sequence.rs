//! Predicts a reader's next range from its previous reads.
//!
//! Pure: positions in, ranges out. Sequential readers get a growing read-ahead window; random ones
//! get none. Reads may come slightly out of order, as the kernel's own read-ahead causes.

use packfs_format::units::*;
use std::ops::Range;

/// Initial read-ahead window.
const WINDOW_MIN: u64 = 128 << 10;
/// A read that starts within this distance of the reader's position is sequential.
const SLACK: u64 = 128 << 10;
/// A first read of this length from the start of a file is taken as the beginning of sequential
/// access.
const FIRST_LEN_MIN: u64 = 16 << 10;

/// Bytes read in order after which a reader counts as sequential.
const IN_ORDER_LEN_MIN: u64 = 512 << 10;
/// Jumps without sequential reads between them after which a reader counts as random.
const JUMPS_MIN: u32 = 8;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sequence {
    next: u64,
    ahead: u64,
    /// Length of read-ahead; 0 for a random reader.
    window: u64,
    /// True if the last read neither continued the one before nor began at the start of the file.
    jumps: bool,
    passed: u64,
    /// Jumps since the last sequential stretch.
    jump_count: u32,
}

impl Sequence {
    /// Returns the range to decode ahead, at most `window_max` bytes.
    pub(crate) fn read(&mut self, offset: u64, len: u64, file_len: u64, window_max: u64) -> Range<u64> {
        let end = end_of(offset, len);
        let is_first = self.next == 0 && offset == 0;
        let goes_on = offset <= end_of(self.next, SLACK) && end_of(end, SLACK) >= self.next;
        self.jumps = !is_first && !goes_on;
        self.passed = if is_first || self.jumps { len } else { end_of(self.passed, len) };
        if is_first {
            self.window = if len >= FIRST_LEN_MIN { WINDOW_MIN } else { 0 };
        } else if !goes_on {
            let jump_count = self.jump_count.saturating_add(1);
            *self = Sequence { next: end, ahead: end, window: 0, jumps: true, passed: len, jump_count };
            return 0..0;
        }
        if self.is_in_order() {
            self.jump_count = 0;
        }
        self.next = self.next.max(end);
        self.ahead = self.ahead.max(self.next);
        // Requests several blocks at a time, once half of the window is used.
        if !is_first && self.ahead - self.next > self.window / 2 {
            return 0..0;
        }
        if !is_first {
            self.window = (self.window * 2).max(WINDOW_MIN);
        }
        self.window = self.window.min(window_max);
        let start = self.ahead;
        self.ahead = end_of(self.next, self.window).min(file_len).max(start);
        start..self.ahead
    }

    /// Such reads are mostly small and isolated.
    pub(crate) fn jumps(&self) -> bool {
        self.jumps
    }

    pub(crate) fn is_random(&self) -> bool {
        self.jumps && self.jump_count >= JUMPS_MIN
    }

    pub(crate) fn is_in_order(&self) -> bool {
        self.passed >= IN_ORDER_LEN_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE_LEN: u64 = 10 << 20;
    const MAX: u64 = 1 << 20;

    #[test]
    fn sequential_reads_grow_the_window_without_overlap() {
        let mut sequence = Sequence::default();
        let (mut covered, mut longest) = (0, 0);
        for offset in (0..FILE_LEN).step_by(64 << 10) {
            let range = sequence.read(offset, 64 << 10, FILE_LEN, MAX);
            if !range.is_empty() {
                assert!(range.start >= covered && range.end <= FILE_LEN);
                covered = range.end;
            }
            longest = longest.max(covered.saturating_sub(offset + (64 << 10)));
        }
        assert_eq!((covered, longest), (FILE_LEN, MAX));
    }

    #[test]
    fn slightly_unordered_reads_are_sequential() {
        let mut sequence = Sequence::default();
        sequence.read(0, 128 << 10, FILE_LEN, MAX);
        sequence.read(256 << 10, 128 << 10, FILE_LEN, MAX);
        sequence.read(128 << 10, 128 << 10, FILE_LEN, MAX);
        assert!(sequence.window >= 256 << 10, "{sequence:?}");
        assert_eq!(sequence.next, 384 << 10);
    }

    #[test]
    fn random_reads_are_not_read_ahead() {
        let mut sequence = Sequence::default();
        for step in 0..100_u64 {
            let offset = (step * 7_919 + 13) % 10 * (1 << 20) + 5000;
            assert!(sequence.read(offset, 4096, FILE_LEN, MAX).is_empty(), "{sequence:?}");
            assert!(sequence.jumps() && !sequence.is_in_order(), "{sequence:?}");
        }
        sequence.read(5 << 20, 4096, FILE_LEN, MAX);
        sequence.read((5 << 20) + 4096, 4096, FILE_LEN, MAX);
        assert!(!sequence.jumps(), "{sequence:?}");
    }

    #[test]
    fn many_jumps_without_sequential_reads_make_a_reader_random() {
        let mut sequence = Sequence::default();
        let jump = |sequence: &mut Sequence, index: u64| {
            sequence.read(((index * 7) % 10) << 20, 4096, FILE_LEN, MAX);
            sequence.is_random()
        };
        let found: Vec<bool> = (1..20).map(|index| jump(&mut sequence, index)).collect();
        let wanted: Vec<bool> = (1..20).map(|count| count >= JUMPS_MIN).collect();
        assert_eq!(found, wanted);
        for offset in (0..2 * IN_ORDER_LEN_MIN).step_by(64 << 10) {
            sequence.read((5 << 20) + offset, 64 << 10, FILE_LEN, MAX);
            assert!(offset == 0 || !sequence.is_random());
        }
        assert!(!jump(&mut sequence, 1));
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let mut sequence = Sequence::default();
        for (offset, len) in [(u64::MAX, u64::MAX), (u64::MAX - 5, 10), (0, u64::MAX), (u64::MAX, 0)] {
            let range = sequence.read(offset, len, u64::MAX, u64::MAX);
            assert!(range.start <= range.end);
        }
    }
}

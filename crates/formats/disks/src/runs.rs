//! Runs of a file that blocks of the disk lie in.
//!
//! Owns their number: blocks that lie side by side are one run, so that a sound image has few; of
//! one with many overlaps, no more are kept than [`RUNS_MAX`].

use std::ops::Range;

/// Runs after which those that touch are joined for the first time.
const RUNS_FIRST: usize = 1 << 16;
/// Most runs that are kept: 64 MiB of them.
const RUNS_MAX: usize = 1 << 22;

/// Runs, and the first bytes that belong to two blocks.
#[derive(Debug)]
pub(crate) struct Runs {
    /// Start and end of each.
    runs: Vec<(u64, u64)>,
    /// Number of runs at which they are joined again.
    room: usize,
    shared: Option<Range<u64>>,
    is_too_many: bool,
}

impl Default for Runs {
    fn default() -> Self {
        Runs { runs: Vec::new(), room: RUNS_FIRST, shared: None, is_too_many: false }
    }
}

impl Runs {
    /// Adds the bytes of a block. Returns false if there are too many runs.
    pub(crate) fn push(&mut self, range: Range<u64>) -> bool {
        match self.runs.last_mut() {
            _ if range.is_empty() => {}
            // Blocks mostly lie one after the other.
            Some(last) if last.1 == range.start => last.1 = range.end,
            _ => self.runs.push((range.start, range.end)),
        }
        if self.runs.len() >= self.room {
            self.join();
            self.room = self.runs.len().saturating_mul(2).max(RUNS_FIRST);
            // Overlaps are joined, too, so that any number of them would be taken.
            self.is_too_many = self.runs.len() > RUNS_MAX || self.shared.is_some();
        }
        !self.is_too_many
    }

    /// Puts the runs in order. To be called after the last block.
    pub(crate) fn finish(&mut self) {
        self.join();
    }

    fn join(&mut self) {
        self.runs.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for &(start, end) in &self.runs {
            match joined.last_mut() {
                Some(last) if start <= last.1 => {
                    if start < last.1 && self.shared.is_none() {
                        self.shared = Some(start..end.min(last.1));
                    }
                    last.1 = last.1.max(end);
                }
                _ => joined.push((start, end)),
            }
        }
        self.runs = joined;
    }

    /// Returns true if runs were left out.
    pub(crate) fn is_too_many(&self) -> bool {
        self.is_too_many
    }

    /// Returns the first bytes that belong to several blocks.
    pub(crate) fn shared(&self) -> Option<Range<u64>> {
        self.shared.clone()
    }

    /// Returns all runs, in order.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.runs.iter().map(|(start, end)| *start..*end)
    }

    /// Returns the first run that has bytes of a range.
    pub(crate) fn over(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let first = self.runs.partition_point(|(_, end)| *end <= range.start);
        let (start, end) = *self.runs.get(first)?;
        (start < range.end && !range.is_empty()).then_some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_joined_and_overlaps_told() {
        let mut runs = Runs::default();
        for at in (0..100_000_u64).rev().chain(200_000..200_005) {
            assert!(runs.push(at * 10..at * 10 + 10));
        }
        runs.finish();
        assert_eq!(runs.ranges().collect::<Vec<_>>(), [0..1_000_000, 2_000_000..2_000_050]);
        assert_eq!(
            (runs.shared(), runs.over(&(1_000_000..2_000_000)), runs.over(&(5..5))),
            (None, None, None)
        );
        assert_eq!(runs.over(&(999_999..1_000_005)), Some(0..1_000_000));
        runs.push(2_000_045..2_000_055);
        runs.finish();
        assert_eq!(runs.shared(), Some(2_000_045..2_000_050));
        let mut runs = Runs::default();
        assert!((0..RUNS_FIRST).any(|index| !runs.push(7 * (index as u64 % 2)..10)) && runs.is_too_many());
    }
}

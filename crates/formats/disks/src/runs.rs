//! Runs of a file that contain blocks of the disk.
//!
//! Owns their number: adjacent blocks are one run, so that a valid image has few; for overlapping
//! ones, at most [`RUNS_MAX`] are kept.

use packfs_format::units::*;
use std::ops::Range;

/// Number of runs at which adjacent ones are joined for the first time.
const RUNS_FIRST: usize = 1 << 16;
/// Limit of runs: 64 MiB of them.
const RUNS_MAX: usize = 1 << 22;

/// Runs, and the first bytes that belong to two blocks.
#[derive(Debug)]
pub(crate) struct Runs {
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
    /// Adds the bytes of a block; false if the limit is exceeded.
    pub(crate) fn push(&mut self, range: Range<u64>) -> bool {
        match self.runs.last_mut() {
            _ if range.is_empty() => {}
            // Blocks are mostly contiguous.
            Some(last) if last.1 == range.start => last.1 = range.end,
            _ => self.runs.push((range.start, range.end)),
        }
        if self.runs.len() >= self.room {
            self.join();
            self.room = self.runs.len().times(2).max(RUNS_FIRST);
            // Overlaps are joined, too, so their number would not be bounded.
            self.is_too_many = self.runs.len() > RUNS_MAX || self.shared.is_some();
        }
        !self.is_too_many
    }

    /// Sorts the runs; called after the last block.
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

    pub(crate) fn is_too_many(&self) -> bool {
        self.is_too_many
    }

    pub(crate) fn shared(&self) -> Option<Range<u64>> {
        self.shared.clone()
    }

    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.runs.iter().map(|(start, end)| *start..*end)
    }

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

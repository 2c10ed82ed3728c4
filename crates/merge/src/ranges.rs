//! Ranges of an image that files refer to; adjacent ones are joined.

use std::ops::Range;

/// Ranges are joined at this number, and again whenever it has doubled.
const ROWS_MIN: usize = 1 << 16;

#[derive(Debug)]
pub(crate) struct Ranges {
    rows: Vec<(u64, u64)>,
    /// Ranges start and end at multiples of this.
    unit: u64,
    join_at: usize,
}

impl Ranges {
    /// `unit` is a power of two.
    pub(crate) fn new(unit: u64) -> Self {
        Ranges { rows: Vec::new(), unit, join_at: ROWS_MIN }
    }

    pub(crate) fn add(&mut self, start: u64, len: u64) {
        if len == 0 {
            return;
        }
        let end = start.saturating_add(len).checked_next_multiple_of(self.unit).unwrap_or(u64::MAX);
        let start = start / self.unit * self.unit;
        match self.rows.last_mut() {
            Some(last) if last.0 <= start && start <= last.1 => last.1 = last.1.max(end),
            _ => self.rows.push((start, end)),
        }
        if self.rows.len() >= self.join_at {
            self.join();
            self.join_at = ROWS_MIN.max(self.rows.len() * 2);
        }
    }

    fn join(&mut self) {
        self.rows.sort_unstable();
        self.rows.dedup_by(|next, last| {
            let joins = next.0 <= last.1;
            if joins {
                last.1 = last.1.max(next.1);
            }
            joins
        });
    }

    /// Ranges are in order and disjoint.
    pub(crate) fn finish(mut self) -> Vec<Range<u64>> {
        self.join();
        self.rows.into_iter().map(|(start, end)| start..end).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(ranges: Ranges) -> Range<u64> {
        let ranges = ranges.finish();
        assert_eq!(ranges.len(), 1, "{ranges:?}");
        ranges[0].clone()
    }

    #[test]
    fn ranges_that_touch_or_overlap_are_joined() {
        let mut ranges = Ranges::new(1);
        for (start, len) in [(10, 5), (15, 5), (40, 1), (30, 5), (32, 10), (50, 0)] {
            ranges.add(start, len);
        }
        assert_eq!(ranges.finish(), [10..20, 30..42]);
    }

    #[test]
    fn ranges_are_whole_units() {
        let mut ranges = Ranges::new(4096);
        for (start, len) in [(5000, 1), (9000, 10), (4096, 8192), (100_000, 3), (u64::MAX - 1, 1)] {
            ranges.add(start, len);
        }
        assert_eq!(ranges.finish()[..2], [4096..12_288, 98_304..102_400]);
    }

    #[test]
    fn a_range_over_the_end_of_a_unit_is_both_units() {
        let mut ranges = Ranges::new(4096);
        ranges.add(4000, 200);
        assert_eq!(only(ranges), 0..8192);
    }

    #[test]
    fn many_ranges_stay_few_where_they_join() {
        let mut ranges = Ranges::new(1);
        let count = ROWS_MIN as u64;
        for start in [0, 2] {
            (0..count).for_each(|index| ranges.add(index * 4 + start, 2));
        }
        assert!(ranges.rows.len() <= ROWS_MIN * 2, "{}", ranges.rows.len());
        assert_eq!(only(ranges), 0..count * 4);
    }
}

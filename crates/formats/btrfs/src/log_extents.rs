//! Ranges of a file that a log replaces.

use crate::tree::Item;
use std::ops::Range;

#[derive(Default)]
pub(crate) struct Cuts {
    pub(crate) inode: u64,
    pub(crate) end: Option<u64>,
    pub(crate) ranges: Vec<Range<u64>>,
    pub(crate) items: Vec<Item>,
}

impl Cuts {
    pub(crate) fn of(inode: u64) -> Cuts {
        Cuts { inode, ..Cuts::default() }
    }

    pub(crate) fn joined(&self) -> Vec<Range<u64>> {
        let end = self.end.map(|end| end..u64::MAX);
        let mut all: Vec<Range<u64>> = self.ranges.iter().cloned().chain(end).collect();
        all.sort_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in all.into_iter().filter(|range| !range.is_empty()) {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one_and_the_end_is_the_last() {
        let ranges = vec![8..12, 0..4, 4..6, 5..6, 20..30, 9..9];
        let cuts = Cuts { ranges, end: Some(25), ..Cuts::of(7) };
        assert_eq!(cuts.joined(), [0..6, 8..12, 20..u64::MAX]);
        assert_eq!(Cuts::of(7).joined(), []);
    }
}

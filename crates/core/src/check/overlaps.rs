//! Data that lie half over each other.

use super::{Report, Tally};
use std::ops::Range;

/// Notes which of the places of data overlap in part. Files may share data as a whole; blocks that overlap in part are legal,
/// too, but nobody writes them.
pub fn note_overlaps<'a>(data: impl IntoIterator<Item = &'a Range<u64>>, report: &mut Report<'_>) {
    let mut ranges: Vec<(u64, u64)> = data.into_iter().map(|range| (range.start, range.end)).collect();
    ranges.sort_unstable();
    ranges.dedup();
    let mut overlaps = Tally::default();
    let mut end = 0;
    for (start, own_end) in ranges {
        if start < end {
            overlaps.add(|| format!("at {start:#x}"));
        }
        end = end.max(own_end);
    }
    if let Some(text) = overlaps.told("blocks share a part of their bytes with others") {
        report.note("data", text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(data: &[Range<u64>]) -> Vec<String> {
        let mut faults = Vec::new();
        let mut found = |finding: crate::Finding| faults.push(finding.fault);
        note_overlaps(data, &mut Report::new("any", &mut found));
        faults
    }

    #[test]
    fn what_is_shared_as_a_whole_or_adjoins_is_not_noted() {
        assert_eq!(noted(&[8..16, 0..8, 8..16]), Vec::<String>::new());
    }

    #[test]
    fn what_overlaps_in_part_is_counted_with_the_first_place() {
        let faults = noted(&[40..50, 0..32, 16..24, 24..48]);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].contains("3 of them, the first is at 0x10"), "{faults:?}");
    }
}

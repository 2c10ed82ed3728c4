//! Partly overlapping data.

use super::{Report, Tally};
use crate::units::*;
use std::ops::Range;

/// Limit of ranges: 256 MiB of them. Size words that claim the same few bytes repeatedly compress
/// to nothing, so an image may contain many more than it has bytes.
const PLACES_MAX: usize = 1 << 24;

/// Number of ranges at which equal ones are dropped for the first time.
const PLACES_FIRST: usize = 1 << 16;

/// Ranges of data blocks. Memory is bounded: equal ranges are stored once, and beyond a limit of
/// different ones, none.
pub struct DataPlaces {
    /// Start and end.
    places: Vec<(u64, u64)>,
    /// Number of ranges at which equal ones are dropped again.
    room: usize,
    max: usize,
}

impl Default for DataPlaces {
    fn default() -> Self {
        DataPlaces { places: Vec::new(), room: PLACES_FIRST, max: PLACES_MAX }
    }
}

impl DataPlaces {
    /// Adds a range.
    pub fn add(&mut self, place: Range<u64>) {
        if self.is_too_many() {
            return;
        }
        self.places.push((place.start, place.end));
        if self.places.len() >= self.room {
            self.keep_each_once();
            // So each range is sorted twice on average, however many there are.
            self.room = self.places.len().times(2).max(PLACES_FIRST);
            if self.places.len() > self.max {
                (self.places, self.room) = (Vec::new(), 0);
            }
        }
    }

    fn is_too_many(&self) -> bool {
        self.room == 0
    }

    fn keep_each_once(&mut self) {
        self.places.sort_unstable();
        self.places.dedup();
    }

    /// Notes partial overlaps. Files may share all of their data. Partial overlaps are valid, too,
    /// but no known program writes them.
    pub fn note_overlaps(mut self, report: &mut Report<'_>) {
        if self.is_too_many() {
            let fault =
                format_args!("over {} different blocks; whether they overlap was not checked", self.max);
            report.note("data", fault);
            return;
        }
        self.keep_each_once();
        let mut overlaps = Tally::default();
        let mut end = 0;
        for (start, own_end) in self.places {
            if start < end {
                overlaps.add(|| format!("at {start:#x}"));
            }
            end = end.max(own_end);
        }
        if let Some(text) = overlaps.one_line("blocks share a part of their bytes with others") {
            report.note("data", text);
        }
    }
}

impl Extend<Range<u64>> for DataPlaces {
    fn extend<I: IntoIterator<Item = Range<u64>>>(&mut self, places: I) {
        places.into_iter().for_each(|place| self.add(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted_of(places: DataPlaces) -> Vec<String> {
        let mut faults = Vec::new();
        let mut found = |finding: crate::Finding| faults.push(finding.fault);
        places.note_overlaps(&mut Report::new("any", &mut found));
        faults
    }

    fn noted(data: &[Range<u64>]) -> Vec<String> {
        let mut places = DataPlaces::default();
        places.extend(data.iter().cloned());
        noted_of(places)
    }

    #[test]
    fn whole_sharing_and_adjoining_ranges_are_no_findings() {
        assert_eq!(noted(&[8..16, 0..8, 8..16]), Vec::<String>::new());
    }

    #[test]
    fn partial_overlaps_are_counted_with_the_first_place() {
        let faults = noted(&[40..50, 0..32, 16..24, 24..48]);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].contains("3 of them, the first is at 0x10"), "{faults:?}");
    }

    #[test]
    fn the_same_place_is_kept_once_however_often_it_is_claimed() {
        let mut places = DataPlaces::default();
        (0..10 * PLACES_FIRST as u64).for_each(|number| places.add(number % 7..number % 7 + 1));
        assert!(places.places.capacity() <= 2 * PLACES_FIRST, "{}", places.places.capacity());
        assert_eq!(noted_of(places), Vec::<String>::new());
    }

    #[test]
    fn too_many_places_are_reported_as_not_compared() {
        let mut places = DataPlaces { max: 3 * PLACES_FIRST, ..DataPlaces::default() };
        (0..10 * PLACES_FIRST as u64).for_each(|number| places.add(2 * number..2 * number + 1));
        assert!(places.places.is_empty());
        let faults = noted_of(places);
        assert!(faults.len() == 1 && faults[0].contains("was not checked"), "{faults:?}");
    }
}

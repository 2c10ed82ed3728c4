//! Which bytes of the image the format wrote itself.
//!
//! Every byte of the image has one owner: sections fill what the data leaves, without overlap or gap.

use packfs_core::{Error, Result, Section};
use std::ops::Range;

/// The sections written so far.
#[derive(Default)]
pub(crate) struct Coverage {
    sections: Vec<(Range<u64>, &'static str)>,
}

impl Coverage {
    /// Notes a section; one that continues the last of the same owner is one with it.
    pub(crate) fn add(&mut self, section: &Section) {
        let end = section.offset + section.bytes.len() as u64;
        match self.sections.last_mut() {
            Some((range, owner)) if *owner == section.owner && range.end == section.offset => range.end = end,
            _ => self.sections.push((section.offset..end, section.owner)),
        }
    }

    /// Length of each owner's sections, in bytes, in the order in which they were first written.
    pub(crate) fn by_owner(&self) -> Vec<(&'static str, u64)> {
        let mut rows: Vec<(&'static str, u64)> = Vec::new();
        for (range, owner) in &self.sections {
            let len = range.end - range.start;
            match rows.iter_mut().find(|(name, _)| name == owner) {
                Some((_, sum)) => *sum += len,
                None => rows.push((owner, len)),
            }
        }
        rows
    }

    /// Errors: `Failed` if sections and `data` overlap or leave a gap.
    pub(crate) fn check(&self, data: Range<u64>) -> Result<()> {
        let mut ranges = self.sections.clone();
        ranges.push((data, "file data"));
        ranges.sort_unstable_by_key(|(range, _)| (range.start, range.end));
        let mut end = 0;
        for (range, owner) in ranges {
            if range.start != end {
                let Range { start, .. } = range;
                return Err(Error::failed(format!(
                    "internal: {owner} was laid out at {start:#x}, not at {end:#x}"
                )));
            }
            end = range.end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(sections: &[(&'static str, u64, usize)]) -> Coverage {
        let mut coverage = Coverage::default();
        for &(owner, offset, len) in sections {
            coverage.add(&Section { owner, offset, bytes: vec![0; len] });
        }
        coverage
    }

    #[test]
    fn sections_and_data_fill_the_image() {
        let whole = coverage(&[("inodes", 50, 10), ("inodes", 60, 5), ("superblock", 0, 10)]);
        assert!(whole.check(10..50).is_ok());
        assert_eq!(whole.by_owner(), [("inodes", 15), ("superblock", 10)]);
    }

    #[test]
    fn gaps_and_overlaps_are_found() {
        for data in [10..49, 11..50, 10..51] {
            assert!(coverage(&[("superblock", 0, 10), ("inodes", 50, 10)]).check(data).is_err());
        }
    }
}

//! Accounts for the bytes of the image that the format writes itself.
//!
//! Every byte of the image has one owner: sections fill the space around the data and in front of
//! single files, without overlap or gap.

use packfs_core::{Error, Result};
use packfs_format::Section;
use std::ops::Range;

#[derive(Default)]
pub(crate) struct Coverage {
    sections: Vec<(Range<u64>, &'static str)>,
}

impl Coverage {
    /// A section that continues the last one of the same owner extends it.
    pub(crate) fn add(&mut self, section: &Section) {
        let end = section.offset + section.bytes.len() as u64;
        match self.sections.last_mut() {
            Some((range, owner)) if *owner == section.owner && range.end == section.offset => range.end = end,
            _ => self.sections.push((section.offset..end, section.owner)),
        }
    }

    /// Owners in the order first written.
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

    /// Errors: `Failed` if sections and `data`, without the `leads` in it, overlap or leave a gap.
    pub(crate) fn check(&self, data: Range<u64>, leads: impl Iterator<Item = Range<u64>>) -> Result<()> {
        let mut ranges = self.sections.clone();
        // Files that share their data share the lead.
        let mut leads: Vec<(u64, u64)> = leads.map(|lead| (lead.start, lead.end)).collect();
        leads.sort_unstable();
        leads.dedup();
        let mut start = data.start;
        for (lead_start, lead_end) in leads {
            ranges.push((start..lead_start, "file data"));
            start = lead_end;
        }
        ranges.push((start..data.end, "file data"));
        // A file of holes has a lead and no data.
        ranges.retain(|(range, _)| range.start != range.end);
        ranges.sort_unstable_by_key(|(range, _)| (range.start, range.end));
        let mut end = 0;
        for (range, owner) in ranges {
            if range.start != end {
                let Range { start, .. } = range;
                return Err(Error::failed(format!(
                    "cannot write {owner} at {start:#x}: the part before it ends at {end:#x}"
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
    use std::iter::empty;

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
        assert!(whole.check(10..50, empty()).is_ok());
        assert_eq!(whole.by_owner(), [("inodes", 15), ("superblock", 10)]);
    }

    #[test]
    fn gaps_and_overlaps_are_found() {
        for data in [10..49, 11..50, 10..51] {
            assert!(coverage(&[("superblock", 0, 10), ("inodes", 50, 10)]).check(data, empty()).is_err());
        }
    }

    #[test]
    fn requires_leads_of_files_to_be_filled() {
        let filled = coverage(&[("superblock", 0, 10), ("block pointers", 10, 4), ("block pointers", 30, 8)]);
        let leads = [30..38, 10..14, 30..38];
        assert!(filled.check(10..50, leads.clone().into_iter()).is_ok());
        assert!(filled.check(10..50, leads[..1].iter().cloned()).is_err());
        let adjacent =
            coverage(&[("superblock", 0, 10), ("block pointers", 10, 4), ("block pointers", 14, 8)]);
        assert!(adjacent.check(10..50, [10..14, 14..22].into_iter()).is_ok());
        let forgotten = coverage(&[("superblock", 0, 10), ("block pointers", 10, 4)]);
        assert!(forgotten.check(10..50, leads.into_iter()).is_err());
    }
}

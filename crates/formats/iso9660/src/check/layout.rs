//! Checks of the image as a whole: descriptors, the boot catalog, and overlapping data.

use crate::corruption::Place;
use crate::disk::*;
use crate::open::{DESCRIPTOR, Described};
use crate::volume::Iso9660Volume;
use packfs_core::Result;
use packfs_format::check::{Report, Tally};
use std::ops::Range;

/// A structure and its range in the image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Laid {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) is_directory: bool,
}

impl Laid {
    pub(super) fn new(range: Range<u64>, is_directory: bool) -> Self {
        Laid { start: range.start, end: range.end, is_directory }
    }
}

impl Iso9660Volume {
    pub(super) fn check_descriptors(&self, report: &mut Report<'_>) {
        let geometry = &self.geometry;
        check_descriptor(&geometry.primary, report);
        if let Some((joliet, _)) = &geometry.joliet {
            check_descriptor(joliet, report);
        }
        let (end, len) = (geometry.volume_end(), geometry.image_len);
        if end > len {
            let place = Place::at(DESCRIPTOR, geometry.primary.at);
            report.error(place, format_args!("the volume is {end} bytes long, the image only {len}"));
        }
    }

    pub(super) fn check_boot(&self, report: &mut Report<'_>) -> Result<()> {
        let Some((at, block)) = self.geometry.catalog else { return Ok(()) };
        let catalog = self.boot_catalog();
        let Some(catalog) = report.refused(Place::at("boot record", at), catalog)? else { return Ok(()) };
        let place = Place::at("boot catalog", u64::from(block) * SECTOR_LEN);
        for fault in &catalog.faults {
            report.error(place, fault);
        }
        for image in &catalog.images {
            let place = Place::at("boot image", image.start());
            // Many writers record a whole sector for a shorter image.
            let len = image.loaded_len().min(SECTOR_LEN);
            report.refused(place, self.sectors.check_range(place, len))?;
        }
        Ok(())
    }

    /// Finds directories that overlap anything, and files that partly overlap.
    pub(super) fn check_overlaps(&self, mut laid: Vec<Laid>, report: &mut Report<'_>) {
        laid.sort_unstable();
        laid.dedup();
        let mut shared = Tally::default();
        let mut before: Option<Laid> = None;
        for next in laid {
            if let Some(before) = before.as_ref().filter(|before| next.start < before.end) {
                let (start, end) = (next.start, before.end);
                let words = |laid: &Laid| if laid.is_directory { "directory" } else { "file data" };
                if next.is_directory || before.is_directory {
                    let place = Place::at(words(&next), start);
                    let other = Place::at(words(before), before.start);
                    report.error(place, format_args!("overlaps the {other}, which ends at {end:#x}"));
                } else {
                    shared.add(|| format!("at {start:#x}"));
                }
            }
            if before.as_ref().is_none_or(|before| next.end > before.end) {
                before = Some(next);
            }
        }
        shared.note(report, "file data", "files share a part of their data");
    }
}

fn check_descriptor(described: &Described, report: &mut Report<'_>) {
    let descriptor = &described.descriptor;
    let place = Place::at(DESCRIPTOR, described.at);
    let short = [
        ("volume set size", descriptor.set_len),
        ("volume number", descriptor.number),
        ("block size", descriptor.block_len),
    ];
    let long = [
        ("volume length", descriptor.space_len),
        ("path table length", descriptor.path_table_len),
        ("extent of the root", descriptor.root.extent),
        ("length of the root", descriptor.root.data_len),
    ];
    let short = short.into_iter().filter(|(_, number)| !number.agrees()).map(|(word, _)| word);
    let long = long.into_iter().filter(|(_, number)| !number.agrees()).map(|(word, _)| word);
    for word in short.chain(long) {
        report.warn(place, format_args!("the two byte orders of the {word} differ"));
    }
}

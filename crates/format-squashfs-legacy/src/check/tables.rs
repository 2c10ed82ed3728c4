//! What is checked of the lookup tables, once it is known what inodes use of them.

use super::tree::Seen;
use crate::corruption::Place;
use crate::disk::*;
use crate::volume::LegacyVolume;
use packfs_core::check::{Report, Tally};
use packfs_core::{InodeId, Result};
use std::ops::Range;

/// Checks every table.
pub(super) fn check(volume: &LegacyVolume, seen: &Seen, report: &mut Report<'_>) -> Result<()> {
    let fragments = check_fragments(volume, seen, report)?;
    check_overlaps(&seen.data, fragments, report);
    check_export(volume, seen, report)?;
    check_ids(volume, seen, report);
    if volume.geometry.flag(SQUASHFS_NOD) && seen.compressed_data {
        report.note("superblock", "flag uncompressed-data on an image with compressed data");
    }
    Ok(())
}

fn check_fragments(volume: &LegacyVolume, seen: &Seen, report: &mut Report<'_>) -> Result<Vec<Range<u64>>> {
    let mut ranges = Vec::new();
    let mut unused = Tally::default();
    let mut compressed = false;
    let walked = volume.each_fragment(|index, row| {
        let checked = volume.check_fragment(row, Place::at("fragment", row.start_block));
        if let Some((start, stored)) = report.refused(format_args!("fragment {index}"), checked)? {
            ranges.push(start..start + u64::from(stored.len));
            compressed |= stored.compressed;
        }
        if !seen.fragments.contains(&index) {
            unused.add(|| index.to_string());
        }
        Ok(())
    });
    report.refused("fragment table", walked)?;
    if let Some(text) = unused.told("fragments that no file uses").filter(|_| seen.whole) {
        report.note("fragment table", text);
    }
    if compressed && volume.geometry.flag(SQUASHFS_NOF) {
        report.note("superblock", "flag uncompressed-fragments on an image with compressed fragments");
    }
    Ok(ranges)
}

/// Files may share blocks, and tails may lie in others' blocks; blocks that overlap in part are legal, too, but nobody writes them.
fn check_overlaps(data: &[Range<u64>], fragments: Vec<Range<u64>>, report: &mut Report<'_>) {
    let mut ranges: Vec<(u64, u64)> =
        data.iter().chain(&fragments).map(|range| (range.start, range.end)).collect();
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

fn check_export(volume: &LegacyVolume, seen: &Seen, report: &mut Report<'_>) -> Result<()> {
    let Some(table) = &volume.geometry.export else { return Ok(()) };
    let (mut wrong, mut missing) = (Tally::default(), Tally::default());
    let walked = table.each_row::<8>(&volume.metadata, |index, mut row| {
        let (number, found) = (index.saturating_add(1), row.take(64));
        match seen.numbers.get(&number) {
            Some(&id) if id != InodeId(found) => {
                wrong.add(|| format!("inode {number}, at {found:#x} instead of {:#x}", id.0));
            }
            Some(_) => {}
            None => missing.add(|| format!("inode {number}")),
        }
        Ok(())
    });
    report.refused("export table", walked)?;
    if let Some(text) = wrong.told("rows that lead to another inode") {
        report.error("export table", text);
    }
    if let Some(text) = missing.told("rows of inodes that no directory names").filter(|_| seen.whole) {
        report.note("export table", text);
    }
    Ok(())
}

fn check_ids(volume: &LegacyVolume, seen: &Seen, report: &mut Report<'_>) {
    for (table, ids, used) in
        [("uid table", &volume.uids, &seen.uids), ("gid table", &volume.gids, &seen.gids)]
    {
        let mut unused = Tally::default();
        for (index, id) in ids.iter().enumerate() {
            if u16::try_from(index).is_ok_and(|index| !used.contains(&index)) {
                unused.add(|| id.to_string());
            }
        }
        if let Some(text) = unused.told("ids that no inode uses").filter(|_| seen.whole) {
            report.note(table, text);
        }
    }
}

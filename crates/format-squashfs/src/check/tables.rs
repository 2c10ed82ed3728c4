//! What is checked of the lookup tables, once it is known what inodes use of them.

use super::tree::Seen;
use crate::corruption::{Place, XATTR_TOTAL_LEN_MAX};
use crate::disk::*;
use crate::volume::SquashfsVolume;
use packfs_core::check::{Report, Tally};
use packfs_core::{InodeId, Result};
use std::ops::Range;
use zerocopy::little_endian::U64;

/// Bytes of attributes after which the check looks at no more sets: values may be shared without end.
const XATTR_BYTES_MAX: u64 = 4 << 30;

/// Checks every table.
pub(super) fn check(volume: &SquashfsVolume, seen: &Seen, report: &mut Report<'_>) -> Result<()> {
    let fragments = check_fragments(volume, seen, report)?;
    check_overlaps(&seen.data, fragments, report);
    check_export(volume, seen, report)?;
    check_ids(volume, seen, report);
    check_xattrs(volume, seen, report)?;
    if volume.geometry.flag(SQUASHFS_NOD) && seen.compressed_data {
        report.note("superblock", "flag uncompressed-data on an image with compressed data");
    }
    Ok(())
}

fn check_fragments(volume: &SquashfsVolume, seen: &Seen, report: &mut Report<'_>) -> Result<Vec<Range<u64>>> {
    let mut ranges = Vec::new();
    let Some(table) = &volume.geometry.fragments else { return Ok(ranges) };
    let mut unused = Tally::default();
    let mut compressed = false;
    let walked = table.each_row(&volume.metadata, |index, row: FragmentEntry| {
        let place = Place::at("fragment", row.start_block.get());
        let checked = volume.check_fragment(&row, place);
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

fn check_export(volume: &SquashfsVolume, seen: &Seen, report: &mut Report<'_>) -> Result<()> {
    let Some(table) = &volume.geometry.export else { return Ok(()) };
    let (mut wrong, mut missing) = (Tally::default(), Tally::default());
    let walked = table.each_row(&volume.metadata, |index, row: U64| {
        let number = index.saturating_add(1);
        match seen.numbers.get(&number) {
            Some(&id) if id != InodeId(row.get()) => {
                wrong.add(|| format!("inode {number}, at {:#x} instead of {:#x}", row.get(), id.0));
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

fn check_ids(volume: &SquashfsVolume, seen: &Seen, report: &mut Report<'_>) {
    let mut unused = Tally::default();
    for (index, id) in volume.ids.iter().enumerate() {
        if u16::try_from(index).is_ok_and(|index| !seen.ids.contains(&index)) {
            unused.add(|| id.to_string());
        }
    }
    if let Some(text) = unused.told("ids that no inode uses").filter(|_| seen.whole) {
        report.note("id table", text);
    }
}

fn check_xattrs(volume: &SquashfsVolume, seen: &Seen, report: &mut Report<'_>) -> Result<()> {
    let Some(tables) = &volume.geometry.xattrs else { return Ok(()) };
    let (mut unused, mut sizes, mut unknown) = (Tally::default(), Tally::default(), Tally::default());
    let mut bytes = 0;
    for index in 0..tables.sets.count {
        if report.is_full() {
            return Ok(());
        }
        if bytes > XATTR_BYTES_MAX {
            let text = format!(
                "more than {XATTR_BYTES_MAX} bytes of attributes; sets from {index} on are not checked"
            );
            report.warn("xattr table", text);
            return Ok(());
        }
        if !seen.xattrs.contains(&index) {
            unused.add(|| index.to_string());
        }
        let place = Place::at("xattr set", tables.sets.start());
        let read = volume.xattr_set(index, place);
        let Some((_, figures)) = report.refused(format_args!("xattr set {index}"), read)? else {
            // What was refused has been read, too, nobody knows how far.
            bytes += XATTR_TOTAL_LEN_MAX as u64;
            continue;
        };
        bytes += figures.size + figures.unknown_len;
        if figures.size != figures.size_found && figures.unknown == 0 {
            sizes.add(|| format!("set {index} with {} instead of {}", figures.size_found, figures.size));
        }
        if figures.unknown > 0 {
            unknown.add(|| format!("in set {index}"));
        }
    }
    let told = [
        (unused.told("sets that no inode uses").filter(|_| seen.whole)),
        sizes.told("sets with a wrong size"),
        unknown.told("attributes with a prefix that nobody knows"),
    ];
    for text in told.into_iter().flatten() {
        report.note("xattr table", text);
    }
    Ok(())
}

//! Comparison of path tables with directories.

use crate::corruption::Place;
use crate::disk::*;
use crate::open::Described;
use crate::volume::Iso9660Volume;
use packfs_core::{Result, usize_of};
use packfs_format::check::Report;
use packfs_format::{split_structure, units::*};
use std::collections::HashSet;

/// Limit of a table: 65,535 rows, the maximum that they can number, with the longest name.
const TABLE_LEN_MAX: u64 = 65_535 * 264;

pub(super) fn check(volume: &Iso9660Volume, report: &mut Report<'_>) -> Result<()> {
    let geometry = &volume.geometry;
    let joliet = geometry.joliet.as_ref().map(|(joliet, _)| joliet);
    for tree in [Some(&geometry.primary), joliet].into_iter().flatten() {
        check_tree(volume, tree, report)?;
    }
    Ok(())
}

fn check_tree(volume: &Iso9660Volume, tree: &Described, report: &mut Report<'_>) -> Result<()> {
    let descriptor = &tree.descriptor;
    let mut extents = HashSet::from([descriptor.root.extent.get()]);
    let walked = volume.each_record(tree.root_at(), |record, _| {
        if record.has(FLAG_DIRECTORY) {
            extents.insert(record.head.extent.get());
        }
        Ok(())
    });
    // An unreadable directory was reported already, or is hidden.
    let is_whole = report.refused(Place::at("directories", tree.root_at()), walked)?.is_some();
    let len = u64::from(descriptor.path_table_len.get());
    for (what, block, is_big) in [
        ("path table", descriptor.path_table_le.get(), false),
        ("big-endian path table", descriptor.path_table_be.get(), true),
    ] {
        let place = Place::at(what, block_at(block.into(), volume.geometry.block_len));
        if len > TABLE_LEN_MAX {
            report.error(place, format_args!("{len} bytes, at most {TABLE_LEN_MAX} allowed"));
            continue;
        }
        let mut bytes = Vec::new();
        let room = volume.sectors.check_range(place, len);
        if report.refused(place, room)?.is_none() {
            continue;
        }
        bytes.resize(usize_of(len), 0);
        volume.sectors.read(place, &mut bytes)?;
        check_rows(place, &bytes, is_big, is_whole.then_some(&extents), report);
    }
    Ok(())
}

fn check_rows(
    place: Place,
    mut bytes: &[u8],
    is_big: bool,
    extents: Option<&HashSet<u32>>,
    report: &mut Report<'_>,
) {
    let mut count = 0_usize;
    while !bytes.is_empty() {
        let Some((row, rest)) = split_structure::<PathRow>(bytes) else { break };
        let name_len = usize::from(row.name_len);
        let Some(rest) = rest.get(name_len.next_multiple_of(2)..) else { break };
        bytes = rest;
        let (extent, parent) = if is_big {
            (row.extent.get().swap_bytes(), row.parent.get().swap_bytes())
        } else {
            (row.extent.get(), row.parent.get())
        };
        count = count.plus(1);
        if usize::from(parent) > count || parent == 0 {
            report.error(place, format_args!("row {count}: parent {parent}, 1 to {count} allowed"));
        }
        if extents.is_some_and(|extents| !extents.contains(&extent)) {
            report.warn(place, format_args!("row {count}: no directory at block {extent}"));
        }
        if report.is_full() {
            return;
        }
    }
    if !bytes.is_empty() {
        report.error(place, format_args!("row {} is cut off", count.plus(1)));
    } else if let Some(wanted) = extents.map(HashSet::len)
        && wanted != count
    {
        report.warn(place, format_args!("{count} rows, the image has {wanted} directories"));
    }
}

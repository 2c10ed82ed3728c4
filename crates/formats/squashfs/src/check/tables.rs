//! Checks of the lookup tables against the inodes' use of them.

use super::tree::Seen;
use crate::data::check_fragment;
use crate::place::Place;
use crate::records::Records;
use packfs_core::{Result, range_at};
use packfs_format::check::{Report, Tally};
use packfs_format::{InodeId, units::*};

/// Checks the fragment and export tables, and partial overlaps of data. `raw_fragments` is the
/// superblock flag of uncompressed fragments.
pub(crate) fn check_tables<R: Records>(
    records: &R,
    seen: &mut Seen,
    raw_fragments: bool,
    report: &mut Report<'_>,
) -> Result<()> {
    check_fragments(records, seen, raw_fragments, report)?;
    // Tails may be in other files' blocks.
    std::mem::take(&mut seen.data).note_overlaps(report);
    check_export(records, seen, report)
}

pub(crate) fn check_ids(
    table: &str,
    ids: &[u32],
    seen: &Seen,
    is_used: impl Fn(u16) -> bool,
    report: &mut Report<'_>,
) {
    let mut unused = Tally::default();
    for (index, id) in ids.iter().enumerate() {
        if u16::try_from(index).is_ok_and(|index| !is_used(index)) {
            unused.add(|| id.to_string());
        }
    }
    if seen.whole {
        unused.note(report, table, "ids that no inode uses");
    }
}

fn check_fragments<R: Records>(
    records: &R,
    seen: &mut Seen,
    raw_fragments: bool,
    report: &mut Report<'_>,
) -> Result<()> {
    let mut unused = Tally::default();
    let mut compressed = false;
    let walked = records.each_fragment_row(|index, row| {
        let checked = check_fragment(records, row, Place::at("fragment", row.start_block));
        if let Some((start, stored)) = report.refused(format_args!("fragment {index}"), checked)? {
            seen.data.add(range_at(start, stored.len.into()));
            compressed |= stored.compressed;
        }
        if !seen.fragments.contains(&index) {
            unused.add(|| index.to_string());
        }
        Ok(())
    });
    report.refused("fragment table", walked)?;
    if seen.whole {
        unused.note(report, "fragment table", "fragments that no file uses");
    }
    if compressed && raw_fragments {
        report.note("superblock", "flag uncompressed-fragments on an image with compressed fragments");
    }
    Ok(())
}

fn check_export<R: Records>(records: &R, seen: &Seen, report: &mut Report<'_>) -> Result<()> {
    let Some(table) = &records.layout().export else { return Ok(()) };
    let (mut wrong, mut missing) = (Tally::default(), Tally::default());
    let walked = table.each_row(records.metadata(), |index, row: [u8; 8]| {
        let number = index.plus(1);
        let found = records.metadata().endian().u64(row);
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
    wrong.error(report, "export table", "rows that lead to another inode");
    if seen.whole {
        missing.note(report, "export table", "rows of inodes that no directory names");
    }
    Ok(())
}

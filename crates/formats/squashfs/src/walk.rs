//! Every inode reachable through directories, each once, without recursion.
//!
//! Owns the walk of the space map, and the budgets that the check shares. Invariant: ends for every
//! image. A directory is entered once, and inodes are limited by the size of the inode table.

use crate::data::{check_fragment, each_stored_block};
use crate::dir;
use crate::fault::MetadataFault;
use crate::inode::{raw_inode, word_count};
use crate::place::Place;
use crate::raw::{RawInode, RawKind};
use crate::records::Records;
use crate::stored::Region;
use packfs_core::{Result, range_at};
use packfs_format::{Budget, units::*};
use std::collections::HashSet;
use std::ops::Range;

/// Returns a budget of the maximum decoded length of a table.
pub(crate) fn budget_of(region: &Region) -> Budget {
    Budget::new(region.decoded_len_max())
}

/// Limit of inodes: the count in the superblock, and the capacity of the inode table.
pub(crate) fn inode_count_max<R: Records>(records: &R) -> u64 {
    let layout = records.layout();
    let room = layout.inodes.rows_max(records.shape().inode_len_min);
    room.min(u64::from(layout.inode_count).max(1))
}

/// Errors: the first unreadable structure, and more inodes than the superblock counts.
fn each_inode<R: Records>(records: &R, mut visit: impl FnMut(&RawInode) -> Result<()>) -> Result<()> {
    let root = records.layout().root;
    let max = inode_count_max(records);
    let mut seen = HashSet::from([root]);
    let mut dirs = Vec::new();
    let mut budget = budget_of(&records.layout().directories);
    let mut see = |id, dirs: &mut Vec<_>| -> Result<()> {
        let raw = raw_inode(records, id)?;
        if let RawKind::Dir(dir) = raw.kind {
            dirs.push((raw.place, dir));
        }
        visit(&raw)
    };
    see(root, &mut dirs)?;
    while let Some((place, dir)) = dirs.pop() {
        let mut listing = dir::listing(records, &dir)?;
        budget.spend(listing.len.into(), || MetadataFault::Overlap { place })?;
        while let Some(entry) = listing.next()? {
            if !seen.insert(entry.id) {
                continue;
            }
            if seen.len() as u64 > max {
                return Err(MetadataFault::Inodes { max }.into());
            }
            see(entry.id, &mut dirs)?;
        }
    }
    Ok(())
}

/// Returns the ranges of blocks of files and fragments, with their names in the space map. They may
/// overlap.
///
/// Errors: the first structure that cannot be read.
pub(crate) fn data_claims<R: Records>(records: &R) -> Result<Vec<(Range<u64>, &'static str)>> {
    let mut claims = Vec::new();
    records.each_fragment_row(|_, row| {
        let (start, stored) = check_fragment(records, row, Place::at("fragment", row.start_block))?;
        claims.push((range_at(start, stored.len.into()), "fragments"));
        Ok(())
    })?;
    let mut budget = budget_of(&records.layout().inodes);
    each_inode(records, |raw| {
        let RawKind::File(file) = &raw.kind else { return Ok(()) };
        let len = word_count(records, file).times(records.shape().size_word_len);
        budget.spend(len, || MetadataFault::Overlap { place: raw.place })?;
        let mut end = file.start_block;
        each_stored_block(records, raw, file, |stored| end = end_of(end, stored.len.into()))?;
        if end > file.start_block {
            claims.push((file.start_block..end, "file data"));
        }
        Ok(())
    })?;
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_lasts_for_a_table_and_no_longer() {
        let region = Region { block_name: "inode table block", start: 1000, end: 1300 };
        let mut budget = budget_of(&region);
        // Blocks of three bytes each, as dense as metadata can be.
        assert!(budget.take(100 * 8192));
        assert!(!budget.take(2 * 8192));
    }
}

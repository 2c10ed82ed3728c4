//! Every inode that an image's directories lead to, each once, without recursion.
//!
//! Owns the walk behind the map of space, and the budgets that the check shares. Invariant: ends
//! for every image. A directory is entered once, and no more inodes are seen than the inode table
//! can hold.

use crate::data::{check_fragment, each_stored_block};
use crate::dir;
use crate::fault::MetadataFault;
use crate::inode::{raw_inode, word_count};
use crate::place::Place;
use crate::raw::{RawInode, RawKind};
use crate::records::Records;
use crate::stored::Region;
use packfs_core::{Result, range_at};
use std::collections::HashSet;
use std::ops::Range;

/// Bytes of a table that may still be read. Structures of a sound image do not overlap, so their
/// sum is at most the table's length. An image that refers to the same bytes repeatedly exhausts
/// it.
pub(crate) struct Budget(u64);

impl Budget {
    /// Returns the budget of a table: its largest decoded length.
    pub(crate) fn of(region: &Region) -> Self {
        Budget(region.decoded_len_max())
    }

    /// Takes `len` bytes, if there are so many left.
    pub(crate) fn spend(&mut self, place: Place, len: u64) -> Result<()> {
        self.0 = self.0.checked_sub(len).ok_or(MetadataFault::Overlap { place })?;
        Ok(())
    }
}

/// Most inodes that the image can hold: what its superblock counts, and what its inode table has
/// room for.
pub(crate) fn inode_count_max<R: Records>(records: &R) -> u64 {
    let layout = records.layout();
    let room = layout.inodes.rows_max(records.shape().inode_len_min);
    room.min(u64::from(layout.inode_count).max(1))
}

/// Calls `visit` for each inode.
///
/// Errors: the first thing that cannot be read, and more inodes than the superblock counts.
fn each_inode<R: Records>(records: &R, mut visit: impl FnMut(&RawInode) -> Result<()>) -> Result<()> {
    let root = records.layout().root;
    let max = inode_count_max(records);
    let mut seen = HashSet::from([root]);
    let mut dirs = Vec::new();
    let mut budget = Budget::of(&records.layout().directories);
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
        budget.spend(place, u64::from(listing.len))?;
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

/// The ranges of the image that blocks of files and fragments take, and what to call them in a map
/// of its space. They may lie over each other.
///
/// Errors: the first structure that cannot be read.
pub(crate) fn data_claims<R: Records>(records: &R) -> Result<Vec<(Range<u64>, &'static str)>> {
    let mut claims = Vec::new();
    records.each_fragment_row(|_, row| {
        let (start, stored) = check_fragment(records, row, Place::at("fragment", row.start_block))?;
        claims.push((range_at(start, stored.len.into()), "fragments"));
        Ok(())
    })?;
    let mut budget = Budget::of(&records.layout().inodes);
    each_inode(records, |raw| {
        let RawKind::File(file) = &raw.kind else { return Ok(()) };
        budget.spend(raw.place, word_count(records, file).saturating_mul(records.shape().size_word_len))?;
        let mut end = file.start_block;
        each_stored_block(records, raw, file, |stored| end = end.saturating_add(stored.len.into()))?;
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
        let mut budget = Budget::of(&region);
        let place = Place::at("inode", 1000);
        // Blocks of three bytes each, as dense as metadata can be.
        assert!(budget.spend(place, 100 * 8192).is_ok());
        let error = budget.spend(place, 2 * 8192).unwrap_err().to_string();
        assert!(error.contains("overlap"), "{error}");
    }
}

//! Every inode that an image's directories lead to, each once, without recursion.
//!
//! Owns the walk that the space map and the check share. Invariant: ends for every image. A directory is entered once,
//! and no more inodes are seen than the inode table can hold.

use crate::corruption::{Corruption, Place};
use crate::inode::{RawInode, RawKind};
use crate::metadata::Region;
use crate::volume::LegacyVolume;
use packfs_core::{Error, InodeId, Result};
use std::collections::HashSet;

/// What may still be read of a table. Structures of a true image do not overlap, so that all of them together are no
/// longer than their table; an image that leads to the same bytes over and over runs out.
pub(crate) struct Budget(u64);

impl Budget {
    /// As much as a table can hold.
    pub(crate) fn of(region: &Region) -> Self {
        Budget(region.decoded_len_max())
    }

    /// Takes `len` bytes, if there are so many left.
    pub(crate) fn spend(&mut self, place: Place, len: u64) -> Result<()> {
        self.0 = self.0.checked_sub(len).ok_or(Corruption::Overlap { place })?;
        Ok(())
    }
}

impl LegacyVolume {
    /// Most inodes that the image can hold: what its superblock counts, and what its inode table has room for.
    pub(crate) fn inode_count_max(&self) -> u64 {
        let room = self.geometry.inodes.decoded_len_max() / self.geometry.version().inode_len_min();
        room.min(u64::from(self.geometry.super_block.inodes).max(1))
    }

    /// Calls `visit` for each inode.
    ///
    /// Errors: the first thing that cannot be read, and more inodes than the superblock counts.
    pub(crate) fn each_inode(&self, mut visit: impl FnMut(InodeId, &RawInode) -> Result<()>) -> Result<()> {
        let root = InodeId(self.geometry.super_block.root_inode);
        let max = self.inode_count_max();
        let mut seen = HashSet::from([root]);
        let mut dirs = Vec::new();
        let mut budget = Budget::of(&self.geometry.directories);
        let mut see = |id: InodeId, dirs: &mut Vec<_>| -> Result<()> {
            let raw = self.raw_inode(id)?;
            if let RawKind::Dir(dir) = raw.kind {
                dirs.push((raw.place, dir));
            }
            visit(id, &raw)
        };
        see(root, &mut dirs)?;
        while let Some((place, dir)) = dirs.pop() {
            let mut listing = self.listing(&dir)?;
            budget.spend(place, u64::from(listing.len))?;
            while let Some(entry) = listing.next()? {
                if !seen.insert(entry.id) {
                    continue;
                }
                if seen.len() as u64 > max {
                    let fault =
                        format!("more inodes than the {max} that its superblock and inode table allow");
                    return Err(Error::corrupt("squashfs-legacy image", fault));
                }
                see(entry.id, &mut dirs)?;
            }
        }
        Ok(())
    }

    /// The range of the image that a file's own blocks take; empty for a file without any.
    pub(crate) fn data_range(&self, raw: &RawInode) -> Result<std::ops::Range<u64>> {
        let RawKind::File(file) = raw.kind else { return Ok(0..0) };
        let mut end = file.start_block;
        self.each_stored_block(raw, &file, |stored| end += u64::from(stored.len))?;
        Ok(file.start_block..end)
    }
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

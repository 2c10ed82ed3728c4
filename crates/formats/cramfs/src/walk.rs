//! Every inode that an image's directories lead to, each once, without recursion.
//!
//! Owns the walk of the space map. Invariant: ends for every image. Listings and pointers of a true
//! image do not overlap, so that all of them together are no longer than the image.

use crate::corruption::{Corruption, Place};
use crate::inode::RawInode;
use crate::volume::CramfsVolume;
use packfs_core::{FileType, Result};
use packfs_format::{InodeId, Volume};
use std::collections::HashSet;

/// Bytes that may still be read of structures that do not overlap. An image that refers to the same
/// bytes repeatedly exhausts it.
pub(crate) struct Budget(u64);

impl Budget {
    /// Returns the budget of an image: its length.
    pub(crate) fn of(volume: &CramfsVolume) -> Self {
        Budget(volume.geometry.end)
    }

    /// Takes `len` bytes, if there are so many left.
    pub(crate) fn spend(&mut self, place: Place, len: u64) -> Result<()> {
        self.0 = self.0.checked_sub(len).ok_or(Corruption::Overlap { place })?;
        Ok(())
    }
}

/// Contents that were met: files with the same contents share pointers and blocks, however many
/// there are.
#[derive(Default)]
pub(crate) struct Contents(HashSet<(u32, u32)>);

impl Contents {
    /// Returns true if an inode's contents are met for the first time.
    pub(crate) fn is_new(&mut self, inode: &RawInode) -> bool {
        self.0.insert((inode.raw.offset, inode.raw.size))
    }
}

/// Returns true if an inode has block pointers.
pub(crate) fn has_blocks(inode: &RawInode) -> bool {
    matches!(inode.file_type, FileType::File | FileType::Symlink) && inode.raw.size > 0
}

impl CramfsVolume {
    /// Calls `visit` for each inode.
    ///
    /// Errors: the first thing that cannot be read, and listings that overlap.
    pub(crate) fn each_inode(&self, mut visit: impl FnMut(&RawInode) -> Result<()>) -> Result<()> {
        let mut budget = Budget::of(self);
        let root = self.raw_inode(self.root())?;
        visit(&root)?;
        let mut seen: HashSet<InodeId> = HashSet::new();
        let mut dirs = vec![root];
        while let Some(dir) = dirs.pop() {
            budget.spend(dir.place, dir.raw.size.into())?;
            let mut listing = self.listing(&dir, 0);
            while let Some((id, _)) = listing.next()? {
                if !seen.insert(id) {
                    continue;
                }
                let inode = self.raw_inode(id)?;
                visit(&inode)?;
                if inode.file_type == FileType::Directory {
                    dirs.push(inode);
                }
            }
        }
        Ok(())
    }
}

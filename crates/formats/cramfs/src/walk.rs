//! Every inode reachable through directories, each once, without recursion.
//!
//! Owns the walk of the space map. Invariant: ends for every image. Listings and pointers of a
//! valid image do not overlap, so that together they are no longer than the image.

use crate::corruption::Corruption;
use crate::inode::RawInode;
use crate::volume::CramfsVolume;
use packfs_core::{FileType, Result};
use packfs_format::{Budget, InodeId, Volume};
use std::collections::HashSet;

/// Contents that were met: any number of files with equal contents share pointers and blocks.
#[derive(Default)]
pub(crate) struct Contents(HashSet<(u32, u32)>);

impl Contents {
    pub(crate) fn is_new(&mut self, inode: &RawInode) -> bool {
        self.0.insert((inode.raw.offset, inode.raw.size))
    }
}

pub(crate) fn has_blocks(inode: &RawInode) -> bool {
    matches!(inode.file_type, FileType::File | FileType::Symlink) && inode.raw.size > 0
}

impl CramfsVolume {
    /// Returns a budget of the image's length, for listings or for pointers.
    pub(crate) fn budget(&self) -> Budget {
        Budget::new(self.geometry.end)
    }

    /// Errors: the first unreadable structure, and listings that overlap.
    pub(crate) fn each_inode(&self, mut visit: impl FnMut(&RawInode) -> Result<()>) -> Result<()> {
        let mut budget = self.budget();
        let root = self.raw_inode(self.root())?;
        visit(&root)?;
        let mut seen: HashSet<InodeId> = HashSet::new();
        let mut dirs = vec![root];
        while let Some(dir) = dirs.pop() {
            budget.spend(dir.raw.size.into(), || Corruption::Overlap { place: dir.place })?;
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

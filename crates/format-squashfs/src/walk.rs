//! Every inode that an image's directories lead to, each once, without recursion.
//!
//! Owns the walk that the space map and the check share. Invariant: ends for every image. A directory is entered once,
//! and no more inodes are seen than the inode table can hold.

use crate::inode::{RawInode, RawKind};
use crate::volume::SquashfsVolume;
use packfs_core::{Error, InodeId, Result};
use std::collections::HashSet;

/// Fewest bytes that an inode takes: a base and a link count.
const INODE_LEN_MIN: u64 = 20;

impl SquashfsVolume {
    /// Most inodes that the image can hold: what its superblock counts, and what its inode table has room for.
    pub(crate) fn inode_count_max(&self) -> u64 {
        let room = self.geometry.inodes.decoded_len_max() / INODE_LEN_MIN;
        room.min(u64::from(self.geometry.super_block.inodes.get()).max(1))
    }

    /// Calls `visit` for each inode.
    ///
    /// Errors: the first thing that cannot be read, and more inodes than the superblock counts.
    pub(crate) fn each_inode(&self, mut visit: impl FnMut(InodeId, &RawInode) -> Result<()>) -> Result<()> {
        let root = InodeId(self.geometry.super_block.root_inode.get());
        let max = self.inode_count_max();
        let mut seen = HashSet::from([root]);
        let mut dirs = Vec::new();
        let mut see = |id: InodeId, dirs: &mut Vec<_>| -> Result<()> {
            let raw = self.raw_inode(id)?;
            if let RawKind::Dir(dir) = raw.kind {
                dirs.push(dir);
            }
            visit(id, &raw)
        };
        see(root, &mut dirs)?;
        while let Some(dir) = dirs.pop() {
            let mut listing = self.listing(&dir)?;
            while let Some(entry) = listing.next()? {
                if !seen.insert(entry.id) {
                    continue;
                }
                if seen.len() as u64 > max {
                    let fault =
                        format!("more inodes than the {max} that its superblock and inode table allow");
                    return Err(Error::corrupt("squashfs image", fault));
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

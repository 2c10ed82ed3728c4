//! Every inode that an image's directories lead to, each once, without recursion.
//!
//! Owns the limits that keep walks of hostile images short. Invariant: a walk ends for every image:
//! a directory is entered once, and neither more inodes nor more bytes of directories are seen than
//! an image of this length can hold.

use crate::corruption::{Corruption, Place};
use crate::raw::RawInode;
use crate::reader::Reader;
use packfs_core::{FileType, Result};
use packfs_format::DirCursor;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Largest ratio of decoded metadata to the image's length.
const DECODED_TIMES_MAX: u64 = 256;

/// Structures that may still be met. Those of a sound image do not overlap; an image that refers to
/// the same bytes repeatedly exhausts it.
pub(crate) struct Budget(u64);

impl Budget {
    /// Takes so much, if there is so much left.
    pub(crate) fn spend(&mut self, place: Place, amount: u64) -> Result<()> {
        self.0 = self.0.checked_sub(amount).ok_or(Corruption::Overlap { place })?;
        Ok(())
    }
}

impl Reader {
    /// Bytes of metadata that the image can hold, decoded.
    pub(crate) fn metadata_budget(&self) -> Budget {
        Budget(self.geometry.image_len.saturating_mul(DECODED_TIMES_MAX))
    }

    /// Most inodes that the image can hold.
    pub(crate) fn inode_budget(&self) -> Budget {
        let decoded_max = self.geometry.image_len.saturating_mul(DECODED_TIMES_MAX);
        let metabox_len = self.metabox.as_ref().map_or(0, |metabox| metabox.inode.size.min(decoded_max));
        Budget((self.geometry.image_len.saturating_add(metabox_len) / 32).saturating_add(1))
    }

    /// Calls `visit` for each inode that has a name, the root first.
    pub(crate) fn each_inode(&self, mut visit: impl FnMut(&RawInode) -> Result<()>) -> Result<()> {
        let root = self.raw_inode(self.geometry.root_nid)?;
        let mut seen = HashSet::from([root.nid]);
        let mut dirs = vec![root];
        let (mut inodes, mut listings) = (self.inode_budget(), self.metadata_budget());
        visit(&root)?;
        while let Some(dir) = dirs.pop() {
            if dir.file_type != FileType::Directory {
                let fault = "the root is no directory";
                return Err(Corruption::Fault { place: dir.place, fault }.into());
            }
            listings.spend(dir.place, dir.size)?;
            self.each_child(&dir, DirCursor(0), &mut |entry, _| {
                if !seen.insert(entry.nid) {
                    return Ok(ControlFlow::Continue(()));
                }
                inodes.spend(dir.place, 1)?;
                let raw = self.raw_inode(entry.nid)?;
                visit(&raw)?;
                if raw.file_type == FileType::Directory {
                    dirs.push(raw);
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(())
    }
}

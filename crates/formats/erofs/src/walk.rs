//! Every inode reachable through directories, each once, without recursion.
//!
//! Owns the limits that bound walks of hostile images. Invariant: a walk ends for every image: a
//! directory is entered once, and inodes and bytes of directories are limited by the length of the
//! image.

use crate::corruption::Corruption;
use crate::raw::RawInode;
use crate::reader::Reader;
use packfs_core::{FileType, Result};
use packfs_format::{Budget, DirCursor, units::*};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Largest ratio of decoded metadata to the image's length.
const DECODED_TIMES_MAX: u64 = 256;

impl Reader {
    /// Limit of decoded metadata for this image, in bytes.
    pub(crate) fn metadata_budget(&self) -> Budget {
        Budget::new(nth_at(0, self.geometry.image_len, DECODED_TIMES_MAX))
    }

    /// Limit of inodes for this image.
    pub(crate) fn inode_budget(&self) -> Budget {
        let decoded_max = nth_at(0, self.geometry.image_len, DECODED_TIMES_MAX);
        let metabox_len = self.metabox.as_ref().map_or(0, |metabox| metabox.inode.size.min(decoded_max));
        Budget::new((end_of(self.geometry.image_len, metabox_len) / 32).plus(1))
    }

    /// Calls `visit` for each named inode, the root first.
    pub(crate) fn each_inode(&self, mut visit: impl FnMut(&RawInode) -> Result<()>) -> Result<()> {
        let root = self.raw_inode(self.geometry.root_nid)?;
        let mut seen = HashSet::from([root.nid]);
        let mut dirs = vec![root];
        let (mut inodes, mut listings) = (self.inode_budget(), self.metadata_budget());
        visit(&root)?;
        while let Some(dir) = dirs.pop() {
            if dir.file_type != FileType::Directory {
                return Err(dir.place.fault("the root is no directory"));
            }
            listings.spend(dir.size, || Corruption::Overlap { place: dir.place })?;
            self.each_child(&dir, DirCursor(0), &mut |entry, _| {
                if !seen.insert(entry.nid) {
                    return Ok(ControlFlow::Continue(()));
                }
                inodes.spend(1, || Corruption::Overlap { place: dir.place })?;
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

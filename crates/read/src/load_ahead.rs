//! Fetches the metadata of a remote image before it is loaded: all inodes of a level of the
//! hierarchy at once, because loading waits for a round trip wherever metadata is missing.

use crate::engine::ReadEngine;
use packfs_core::{FileType, Progress};
use packfs_format::DirCursor;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Most inodes that are announced; loading fetches the rest.
const INODES_MAX: usize = 1 << 20;

impl ReadEngine {
    /// Works from the root downwards. Errors are left to loading.
    pub(crate) fn announce_hierarchy(&self, progress: &dyn Progress) {
        if self.blocks.image.fetched().is_none() {
            return;
        }
        let mut dirs = vec![self.volume.root()];
        let mut seen: HashSet<_> = dirs.iter().copied().collect();
        let mut count = 0;
        while !dirs.is_empty() && count < INODES_MAX {
            let (mut inodes, mut below) = (Vec::new(), Vec::new());
            for dir in dirs {
                if progress.cancelled() {
                    return;
                }
                let _ = self.volume.read_dir(dir, DirCursor::default(), &mut |entry, _| {
                    inodes.push(entry.id);
                    if entry.file_type == FileType::Directory && seen.insert(entry.id) {
                        below.push(entry.id);
                    }
                    let is_full = count + inodes.len() >= INODES_MAX;
                    if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
            }
            count += inodes.len();
            if let Some(caching) = self.volume.caching() {
                caching.will_read_inodes(&inodes);
            }
            dirs = below;
        }
    }
}

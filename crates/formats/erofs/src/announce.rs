//! Prefetch hints for inodes and directories.

use crate::disk::InodeExtended;
use crate::reader::Reader;
use packfs_core::{FileType, Image, range_at};
use packfs_format::{ExtentFrom, InodeId};
use std::ops::{ControlFlow, Range};

/// Limit of directory ranges announced at a time.
const PLACES_MAX: usize = 4096;

impl Reader {
    /// Announces inodes, then the blocks of directories among them.
    pub(crate) fn announce(&self, ids: &[InodeId]) {
        let place = |id: &InodeId| {
            let at = self.inode_at(id.0)?;
            Some(range_at(at, size_of::<InodeExtended>() as u64))
        };
        self.will_read(&ids.iter().filter_map(place).collect::<Vec<_>>());
        let mut places: Vec<Range<u64>> = Vec::new();
        for id in ids {
            let Ok(raw) = self.raw_inode(id.0) else { continue };
            if raw.file_type != FileType::Directory {
                continue;
            }
            let _ = self.content(&raw, 0..raw.size, &mut |extent| {
                match extent.from {
                    ExtentFrom::Hole => {}
                    ExtentFrom::Stored(at) => places.push(range_at(at, extent.len)),
                    ExtentFrom::Block { block, .. } => {
                        places.push(range_at(block.offset, block.stored_len.into()));
                    }
                }
                if places.len() < PLACES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            if places.len() >= PLACES_MAX {
                break;
            }
        }
        self.will_read(&places);
    }
}

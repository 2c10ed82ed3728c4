//! The disk: rows of the index converted to extents.
//!
//! Owns the decoded length of a block. Invariant: extents have no gaps, and none is longer than its
//! block.

use crate::index::StoredBlock;
use crate::volume::CloopVolume;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{Result, blocks_of};
use packfs_format::{Extent, ExtentFrom, Extents};
use std::ops::{ControlFlow, Range};

impl CloopVolume {
    /// `range` is not empty; see [`packfs_format::Volume::extents`].
    pub(crate) fn disk_extents(
        &self,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let blocks = blocks_of(&range, self.geometry.block_len.into());
        let mut extents = Extents::new(range, visit);
        let walked = self.index.each(&*self.image, &self.geometry, blocks, &mut |_, row| {
            Ok(extents.push(self.extent(&row?)).is_continue())
        });
        extents.finish(walked)
    }

    fn extent(&self, stored: &StoredBlock) -> Extent {
        let offset = self.geometry.block_start(stored.block);
        let holds = self.geometry.block_holds(stored.block);
        let from = match stored.algorithm {
            None => ExtentFrom::Stored(stored.start),
            Some(algorithm) => {
                // Blocks are padded with zeros, so the last one may exceed the disk.
                let is_whole = holds == u64::from(self.geometry.block_len);
                let block = BlockRef {
                    offset: stored.start,
                    stored_len: stored.len,
                    decoded_len: u32::try_from(holds).unwrap_or(self.geometry.block_len),
                    decodes_to: if is_whole { DecodedLen::Exactly } else { DecodedLen::Prefix },
                    zero_padded: false,
                    algorithm: Some(algorithm),
                };
                ExtentFrom::Block { block, start: 0 }
            }
        };
        Extent { offset, len: holds, from }
    }
}

//! The disk: rows of the index turned into extents.
//!
//! Owns what a block decodes to. Invariant: extents leave no gap, and none is longer than its block.

use crate::index::StoredBlock;
use crate::volume::CloopVolume;
use packfs_core::{BlockRef, DecodedLen, Extent, ExtentFrom, Result};
use std::ops::{ControlFlow, Range};

impl CloopVolume {
    /// The extents of the disk that cover `range`; see [`packfs_core::Volume::extents`].
    pub(crate) fn disk_extents(
        &self,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let range = range.start..range.end.min(self.geometry.disk_len);
        if range.is_empty() {
            return Ok(());
        }
        let block_len = u64::from(self.geometry.block_len);
        let blocks = range.start / block_len..range.end.div_ceil(block_len);
        let mut pending: Option<Extent> = None;
        let mut goes_on = true;
        self.index.each(&*self.image, &self.geometry, blocks, &mut |_, row| {
            let extent = self.extent(&row?, &range);
            match (&mut pending, extent.from) {
                // Neighbours that are stored as they are, are one run.
                (Some(Extent { from: ExtentFrom::Stored(at), len, .. }), ExtentFrom::Stored(next))
                    if *at + *len == next =>
                {
                    *len += extent.len;
                }
                _ => {
                    if let Some(done) = pending.replace(extent) {
                        goes_on = visit(done).is_continue();
                    }
                }
            }
            Ok(goes_on)
        })?;
        if let Some(last) = pending.filter(|_| goes_on) {
            let _ = visit(last);
        }
        Ok(())
    }

    /// The part of a block that lies in a range of the disk, which it does.
    fn extent(&self, stored: &StoredBlock, range: &Range<u64>) -> Extent {
        let offset = stored.block * u64::from(self.geometry.block_len);
        let holds = self.geometry.block_holds(stored.block);
        let (start, end) = (offset.max(range.start), (offset + holds).min(range.end));
        let cut = start - offset;
        let from = match stored.algorithm {
            None => ExtentFrom::Stored(stored.start + cut),
            Some(algorithm) => {
                // Blocks are filled up with zeros, so the last one may hold more than the disk is long.
                let is_whole = holds == u64::from(self.geometry.block_len);
                let block = BlockRef {
                    offset: stored.start,
                    stored_len: stored.len,
                    decoded_len: holds as u32,
                    decodes_to: if is_whole { DecodedLen::Exactly } else { DecodedLen::Prefix },
                    zero_padded: false,
                    algorithm: Some(algorithm),
                };
                ExtentFrom::Block { block, start: cut as u32 }
            }
        };
        Extent { offset: start, len: end - start, from }
    }
}

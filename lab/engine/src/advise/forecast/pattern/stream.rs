//! The stream of tails that EROFS has: where in it what is stored at a place begins.

use packfs::{ExtentFrom, Result, Volume};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Tails of all files, one behind the other.
#[derive(Default)]
pub(super) struct Stream {
    /// By place in the image: where in the stream a cluster begins, and how much it decodes to.
    clusters: BTreeMap<u64, (u64, u32)>,
    /// Length, decoded, in bytes.
    pub(super) decoded: u64,
    /// And stored.
    pub(super) stored: u64,
}

impl Stream {
    /// The stream of a volume; empty where there is none.
    ///
    /// Errors: those of reading the image.
    pub(super) fn of(volume: &dyn Volume) -> Result<Stream> {
        let Some((id, len)) = volume.packed_stream() else { return Ok(Stream::default()) };
        let mut stream = Stream { decoded: len, ..Stream::default() };
        volume.extents(id, 0..len, &mut |extent| {
            let at = match extent.from {
                ExtentFrom::Block { block, start } => {
                    stream.stored += u64::from(block.stored_len);
                    Some((block.offset, extent.offset.saturating_sub(u64::from(start))))
                }
                ExtentFrom::Stored(offset) => {
                    stream.stored += extent.len;
                    Some((offset, extent.offset))
                }
                ExtentFrom::Hole => None,
            };
            if let Some((offset, begins)) = at {
                stream.clusters.insert(offset, (begins, extent.len.min(u64::from(u32::MAX)) as u32));
            }
            ControlFlow::Continue(())
        })?;
        Ok(stream)
    }

    /// Where in the stream the byte at `start` of what is stored at `offset` is, and how long its cluster is.
    pub(super) fn find(&self, offset: u64, start: u32) -> Option<(u64, u32)> {
        let &(begins, len) = self.clusters.get(&offset)?;
        Some((begins + u64::from(start), len))
    }
}

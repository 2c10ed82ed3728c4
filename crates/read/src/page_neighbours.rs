//! Pages around the target of a random read that lie in the same block. They are decoded anyway,
//! and useful to callers that cache what they read, as the kernel does.

use crate::block::{Place, SharedBytes};
use crate::file::FileReader;
use packfs_core::{Result, range_at};
use packfs_format::{Extent, ExtentFrom, units::*};
use std::ops::{ControlFlow, Range};

/// Page size of such caches; the rest of a page would have to be read again.
const PAGE_LEN: u64 = 4096;
/// Most bytes before and after the target: blocks may be as long as 64 MiB.
const LEN_MAX: u64 = 512 << 10;

/// Bytes of a file around a position that was read.
#[derive(Clone, Debug)]
pub struct PageNeighbours {
    /// Start in the file, at a multiple of the page.
    pub offset: u64,
    /// Whole pages, except for the last one of the file.
    pub bytes: SharedBytes,
}

impl FileReader {
    /// Returns true if the last reads were random.
    pub fn is_random(&self) -> bool {
        self.sequence().is_random()
    }

    /// Returns the pages around `offset` in the same block, if any. The block becomes evictable,
    /// because the caller is assumed to keep the pages.
    ///
    /// Errors: `Corrupt`, `Io`.
    pub fn page_neighbours(&self, offset: u64) -> Result<Option<PageNeighbours>> {
        let Some(extent) = self.extent_around(offset)? else { return Ok(None) };
        let ExtentFrom::Block { block, start } = extent.from else { return Ok(None) };
        let pages = self.pages(&extent, offset);
        if pages.end <= end_of(pages.start, PAGE_LEN) {
            return Ok(None);
        }
        let blocks = &self.engine.blocks;
        let slot = blocks.cache.slot(&block);
        let decoded = blocks.decoders.with(|decoders| blocks.get(&slot, &block, decoders))?;
        let total = decoded.len() as u64;
        blocks.cache.use_up(&slot, total, total);
        // The start of the extent and the block's length are both u32.
        let start = u64::from(start) + (pages.start - extent.offset);
        let start = u32::try_from(start).unwrap_or(u32::MAX);
        let bytes = SharedBytes::of(&block, decoded, start, pages.end - pages.start)?;
        Ok(Some(PageNeighbours { offset: pages.start, bytes }))
    }

    /// Makes the block around `offset` evictable: the caller keeps what it read.
    pub fn make_evictable(&self, offset: u64) {
        // A block that cannot be found takes no memory.
        let _ = self.engine.volume.extents(self.id, range_at(offset, 1), &mut |extent| {
            if let ExtentFrom::Block { block, .. } = &extent.from {
                let total = u64::from(block.decoded_len);
                let cache = &self.engine.blocks.cache;
                cache.use_up(&cache.slot(block), total, total);
            }
            ControlFlow::Break(())
        });
    }

    fn extent_around(&self, offset: u64) -> Result<Option<Extent>> {
        let extents = |range: Range<u64>| {
            let mut found = None;
            self.engine.volume.extents(self.id, range, &mut |extent| {
                let is_it = extent.offset <= offset && offset - extent.offset < extent.len;
                let goes_on = !is_it && extent.offset <= offset;
                found = is_it.then_some(extent);
                if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            Result::Ok(found)
        };
        if offset >= self.len {
            return Ok(None);
        }
        let Some(narrow) = extents(offset..offset + 1)? else { return Ok(None) };
        let ExtentFrom::Block { block, start } = &narrow.from else { return Ok(None) };
        // An extent starts at the requested offset: the block may hold bytes before and after it.
        let first = left(offset, u64::from(*start));
        let end = end_of(first, block.decoded_len.into()).clamp(offset + 1, self.len);
        let wide = extents(first..end)?;
        let is_same = |wide: &Extent| match &wide.from {
            ExtentFrom::Block { block: other, .. } => Place::of(other) == Place::of(block),
            _ => false,
        };
        Ok(wide.filter(is_same))
    }

    /// Within `LEN_MAX` of `offset`.
    fn pages(&self, extent: &Extent, offset: u64) -> Range<u64> {
        let page = offset - offset % PAGE_LEN;
        let nearest = left(page, LEN_MAX).max(extent.offset);
        let start = nearest.checked_next_multiple_of(PAGE_LEN).unwrap_or(u64::MAX);
        let end = extent.range().end.min(end_of(page, LEN_MAX));
        let end = if end >= self.len { self.len } else { end - end % PAGE_LEN };
        start..end.max(start)
    }
}

//! Tables with one entry for each block of the disk.
//!
//! Owns the reading of entries on demand, through a bounded cache.

use crate::volume::{Place, Visit};
use packfs_core::{Image, Result, blocks_of, range_at, u32_of, usize_of};
use packfs_format::{BlockCache, units::*};
use std::ops::Range;
use std::sync::Arc;

const PART_LEN: u64 = 4096;
const CACHE_BYTES: usize = 4 << 20;

/// A table of 4 or 8 byte numbers in a file.
pub(crate) struct Table {
    image: Arc<dyn Image>,
    parts: BlockCache<Vec<u8>>,
}

impl Table {
    pub(crate) fn new(image: Arc<dyn Image>) -> Table {
        Table { image, parts: BlockCache::new(CACHE_BYTES) }
    }

    /// Returns the `N` bytes at `at` of the file, which contains a table; zeros after its end.
    ///
    /// Errors: `Io`.
    pub(crate) fn entry<const N: usize>(&self, at: u64) -> Result<[u8; N]> {
        let within = at % PART_LEN;
        let start = at.minus(within);
        let part = self.parts.get_or(start, || {
            let len = left(self.image.len(), start).min(PART_LEN);
            let mut bytes = vec![0; usize_of(len)];
            self.image.read_exact_at(start, &mut bytes)?;
            Ok((bytes, usize_of(PART_LEN)))
        })?;
        let mut entry = [0; N];
        let within = usize_of(within);
        match part.get(within..within.plus(N)) {
            Some(bytes) => entry.copy_from_slice(bytes),
            // An unaligned entry, or one after the end.
            None => drop(self.image.read_at(at, &mut entry)?),
        }
        Ok(entry)
    }
}

/// Calls `visit` for the blocks of `block_len` bytes in `range` of a disk; `place` locates the
/// first byte of a block.
///
/// Errors: those of `visit` and of `place`.
pub(crate) fn each_block(
    range: Range<u64>,
    block_len: u64,
    place: &mut dyn FnMut(u64) -> Result<Place>,
    visit: &mut Visit<'_>,
) -> Result<()> {
    for block in blocks_of(&range, block_len) {
        let own = range_at(block.times(block_len), block_len);
        let part = own.start.max(range.start)..own.end.min(range.end);
        let cut = part.start.minus(own.start);
        let place = match place(block)? {
            Place::Stored(at) => Place::Stored(at.plus(cut)),
            Place::Block { block, start } => Place::Block { block, start: start.plus(u32_of(cut)) },
            place => place,
        };
        if !visit(part, place)? {
            break;
        }
    }
    Ok(())
}

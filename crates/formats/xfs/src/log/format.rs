//! Descriptions of changed blocks (`struct xfs_buf_log_format`), whose parts are chunks of 128
//! bytes.

use super::transaction::Item;
use crate::corruption::Corruption;
use crate::disk::{le16, le32, le64, part};
use crate::super_block::SECTOR;
use packfs_core::{Result, usize_of};

/// Flags: next pointers of inodes that were removed, and a block that was freed.
pub(super) const INODES: u16 = 1;
pub(super) const CANCEL: u16 = 2;
/// Bytes before the map of chunks, and of a chunk.
const MAP_AT: usize = 20;
const CHUNK: usize = 128;

/// Description of a changed block.
pub(super) struct Format<'a> {
    pub(super) flags: u16,
    /// Sectors of the block, and the number of the first.
    pub(super) sectors: u16,
    pub(super) first: u64,
    map: &'a [u8],
}

impl Format<'_> {
    pub(super) fn parse(item: &Item) -> Result<Format<'_>> {
        let bytes = item.region(0);
        let (sectors, first) = (le16(bytes, 6), le64(bytes, 8));
        let fault = |fault| Corruption::LogItem { what: "block", number: first, fault };
        let words = usize_of(le32(bytes, 16).into());
        match part(bytes, MAP_AT, words.saturating_mul(4)) {
            Some(map) if bytes.len() >= MAP_AT => Ok(Format { flags: le16(bytes, 4), sectors, first, map }),
            _ => Err(fault("its map is cut off").into()),
        }
    }

    pub(super) fn at(&self) -> u64 {
        self.first.saturating_mul(SECTOR)
    }

    pub(super) fn len(&self) -> u64 {
        u64::from(self.sectors).saturating_mul(SECTOR)
    }

    fn has_chunk(&self, index: usize) -> bool {
        le32(self.map, (index / 32).saturating_mul(4)) >> (index % 32) & 1 == 1
    }

    /// Returns offset and bytes of each changed part; contiguous chunks may be several regions.
    pub(super) fn parts<'a>(&self, item: &'a Item) -> Result<Vec<(usize, &'a [u8])>> {
        let fault = |fault| Corruption::LogItem { what: "block", number: self.first, fault };
        let chunks = self.map.len().saturating_mul(8);
        let (mut parts, mut index, mut regions) = (Vec::new(), 0_usize, item.regions.iter().skip(1));
        while index < chunks {
            if !self.has_chunk(index) {
                index = index.saturating_add(1);
                continue;
            }
            let run = (index..chunks).take_while(|chunk| self.has_chunk(*chunk)).count();
            let Some(region) = regions.next() else {
                return Err(fault("fewer regions than its map has").into());
            };
            let count = run.min(region.len() / CHUNK);
            let bytes = part(region, 0, count.saturating_mul(CHUNK)).unwrap_or_default();
            let at = index.saturating_mul(CHUNK);
            let end = (at as u64).saturating_add(bytes.len() as u64);
            if count == 0 || end > self.len() {
                return Err(fault("its map goes beyond it").into());
            }
            parts.push((at, bytes));
            index = index.saturating_add(count);
        }
        Ok(parts)
    }
}

/// Last change of a block.
pub(super) struct Changed {
    pub(super) sectors: u16,
    pub(super) kind: u16,
    pub(super) lsn: u64,
}

/// Replaces bytes; those outside are left out.
pub(super) fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at.saturating_add(new.len())) {
        place.copy_from_slice(new);
    }
}

//! Descriptions of changed blocks (`struct xfs_buf_log_format`) in chunks of 128 bytes.

use super::transaction::Item;
use crate::corruption::Corruption;
use crate::disk::log::BufLogFormat;
use crate::super_block::SECTOR;
use packfs_core::{Result, usize_of};
use packfs_format::{structures, units::*};
use zerocopy::little_endian::U32;

/// Flags: next pointers of unlinked inodes, and a freed block.
pub(super) const INODES: u16 = 1;
pub(super) const CANCEL: u16 = 2;
const CHUNK: usize = 128;

pub(super) struct Format {
    pub(super) flags: u16,
    /// Length of the block, and its address, in sectors.
    pub(super) sectors: u16,
    pub(super) first: u64,
    /// One bit for each changed chunk.
    map: Vec<U32>,
}

impl Format {
    pub(super) fn parse(item: &Item) -> Result<Format> {
        let raw: BufLogFormat = item.head("block")?;
        let first = raw.blf_blkno.get();
        let map_len = usize_of(raw.blf_map_size.get().into()).times(4);
        let Some(map) = part(item.region(0), size_of::<BufLogFormat>(), map_len) else {
            return Err(Corruption::log_item("block", first, "its map is cut off").into());
        };
        let (flags, sectors) = (raw.blf_flags.get(), raw.blf_len.get());
        Ok(Format { flags, sectors, first, map: structures(map).collect() })
    }

    pub(super) fn at(&self) -> u64 {
        nth_at(0, self.first, SECTOR)
    }

    pub(super) fn len(&self) -> u64 {
        u64::from(self.sectors).times(SECTOR)
    }

    fn has_chunk(&self, index: usize) -> bool {
        self.map.get(index / 32).is_some_and(|word| word.get() >> (index % 32) & 1 == 1)
    }

    /// Returns offset and bytes of each changed part; contiguous chunks may be several regions.
    pub(super) fn parts<'a>(&self, item: &'a Item) -> Result<Vec<(usize, &'a [u8])>> {
        let fault = |fault| Corruption::log_item("block", self.first, fault);
        let chunks = self.map.len().times(32);
        let mut parts = Vec::new();
        let mut index = 0_usize;
        let mut regions = item.regions.iter().skip(1);
        while index < chunks {
            if !self.has_chunk(index) {
                index = index.plus(1);
                continue;
            }
            let run = (index..chunks).take_while(|chunk| self.has_chunk(*chunk)).count();
            let Some(region) = regions.next() else {
                return Err(fault("fewer regions than its map has").into());
            };
            let count = run.min(region.len() / CHUNK);
            let bytes = region.within(..count.times(CHUNK));
            let at = index.times(CHUNK);
            let end = (at as u64).plus(bytes.len() as u64);
            if count == 0 || end > self.len() {
                return Err(fault("its map goes beyond it").into());
            }
            parts.push((at, bytes));
            index = index.plus(count);
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

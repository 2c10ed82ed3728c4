//! Chunk-based files: chunks of equal length, each on any device or a hole.

use super::{RunFrom, Runs};
use crate::corruption::Place;
use crate::disk::*;
use crate::figures::low_bits;
use crate::raw::RawInode;
use crate::reader::Reader;
use packfs_core::{Error, Result};
use packfs_format::units::*;
use std::mem::size_of;
use zerocopy::little_endian::U32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkMap {
    pub(crate) at: u64,
    /// Bytes of a row: 4 or 8.
    pub(crate) row_len: u64,
    pub(crate) chunk_bits: u32,
    address_bits: u32,
}

impl ChunkMap {
    pub(crate) fn row_count(&self, size: u64) -> u64 {
        size.div_ceil(1 << self.chunk_bits)
    }
}

impl Reader {
    pub(crate) fn chunk_map(&self, raw: &RawInode) -> Result<ChunkMap> {
        let format = (raw.i_u & 0xffff) as u16;
        if format & !EROFS_CHUNK_FORMAT_ALL != 0 {
            let what =
                format!("{}: chunk format {format:#x}, {EROFS_CHUNK_FORMAT_ALL:#x} are known", raw.place);
            return Err(Error::unsupported("erofs image", what));
        }
        let row_len = match format & EROFS_CHUNK_FORMAT_INDEXES {
            0 => EROFS_BLOCK_MAP_ENTRY_SIZE,
            _ => size_of::<ChunkIndex>() as u64,
        };
        let wide = row_len > EROFS_BLOCK_MAP_ENTRY_SIZE && format & EROFS_CHUNK_FORMAT_48BIT != 0;
        let bits_above_block = u32::from(format & EROFS_CHUNK_FORMAT_BLKBITS_MASK);
        Ok(ChunkMap {
            at: raw.tail_at().next_multiple_of(row_len),
            row_len,
            // At most 16 and 31.
            chunk_bits: self.geometry.block_bits.plus(bits_above_block),
            address_bits: if wide { 48 } else { 32 },
        })
    }

    /// See [`Reader::runs`].
    pub(super) fn chunk_runs(&self, raw: &RawInode, runs: &mut Runs<'_>) -> Result<()> {
        let map = self.chunk_map(raw)?;
        let chunk_len = 1 << map.chunk_bits;
        let place = raw.place.of("chunk map of the inode");
        for index in runs.range.start >> map.chunk_bits.. {
            let offset = index << map.chunk_bits;
            let len = raw.size.minus(offset).min(chunk_len);
            let found = self.chunk_place(&map, index, len, place)?;
            let from = found.map_or(RunFrom::Hole, RunFrom::Stored);
            if runs.push(offset, len, from).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Calls `visit` for each chunk with its length in the file and its address, or `None` for a
    /// hole.
    pub(super) fn each_chunk(
        &self,
        raw: &RawInode,
        visit: &mut dyn FnMut(u64, Option<u64>) -> Result<()>,
    ) -> Result<()> {
        let map = self.chunk_map(raw)?;
        let place = raw.place.of("chunk map of the inode");
        for index in 0..map.row_count(raw.size) {
            let len = raw.size.minus(index << map.chunk_bits).min(1 << map.chunk_bits);
            visit(len, self.chunk_place(&map, index, len, place)?)?;
        }
        Ok(())
    }

    fn chunk_place(&self, map: &ChunkMap, index: u64, len: u64, place: Place) -> Result<Option<u64>> {
        let (device, block) = self.chunk_row(map, nth_at(map.at, index, map.row_len), place)?;
        if block == low_bits(map.address_bits) {
            return Ok(None);
        }
        let address = self.geometry.bytes_of(block).unwrap_or(u64::MAX);
        self.joined.locate(&self.geometry, device, address, len, place).map(Some)
    }

    fn chunk_row(&self, map: &ChunkMap, at: u64, place: Place) -> Result<(u16, u64)> {
        if map.row_len == EROFS_BLOCK_MAP_ENTRY_SIZE {
            return Ok((0, u64::from(self.read_struct::<U32>(at, place)?.get())));
        }
        let row: ChunkIndex = self.read_struct(at, place)?;
        let upper = if map.address_bits == 48 { u64::from(row.startblk_hi.get()) << 32 } else { 0 };
        Ok((row.device_id.get(), u64::from(row.startblk_lo.get()) | upper))
    }
}

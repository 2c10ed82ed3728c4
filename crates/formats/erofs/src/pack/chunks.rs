//! Maps of chunk-based files.

use crate::disk::{self, ChunkIndex};
use packfs_core::{Error, Result};
use packfs_format::{Cluster, ClusterForm};
use zerocopy::IntoBytes;

/// First block of each chunk; `None` for a hole.
#[derive(Debug)]
pub(super) struct ChunkMap {
    blocks: Vec<Option<u64>>,
    chunk_bits: u32,
    /// True if block numbers need more than 4 bytes.
    wide: bool,
    /// True to use 8-byte rows anyway.
    indexes: bool,
}

impl ChunkMap {
    /// Returns the map of a file of `size` bytes; all clusters but the last are multiples of
    /// `chunk_len`.
    ///
    /// Errors: `Failed` if the clusters do not make up the file.
    pub(super) fn new(
        clusters: &[Cluster],
        size: u64,
        chunk_len: u64,
        block_bits: u32,
        indexes: bool,
    ) -> Result<Self> {
        let chunk_count = size.div_ceil(chunk_len) as usize;
        let mut blocks = Vec::with_capacity(chunk_count);
        for cluster in clusters {
            let mut offset = cluster.offset;
            for _ in 0..cluster.len.div_ceil(chunk_len) {
                blocks.push((cluster.form != ClusterForm::Hole).then_some(offset >> block_bits));
                offset += chunk_len;
            }
        }
        if blocks.len() != chunk_count {
            return Err(Error::failed(format!("{} chunks make up a file of {chunk_count}", blocks.len())));
        }
        Ok(ChunkMap { indexes, ..ChunkMap::of_blocks(blocks, chunk_len.trailing_zeros() - block_bits) })
    }

    pub(super) fn of_blocks(blocks: Vec<Option<u64>>, chunk_bits: u32) -> Self {
        let wide = blocks.iter().flatten().any(|&block| block >= u64::from(disk::EROFS_NULL_ADDR_32));
        ChunkMap { blocks, chunk_bits, wide, indexes: false }
    }

    pub(super) fn format(&self) -> u64 {
        let long = if self.has_long_rows() { disk::EROFS_CHUNK_FORMAT_INDEXES } else { 0 };
        let wide = if self.wide { disk::EROFS_CHUNK_FORMAT_48BIT } else { 0 };
        u64::from(self.chunk_bits as u16 | long | wide)
    }

    fn has_long_rows(&self) -> bool {
        self.wide || self.indexes
    }

    fn row_len(&self) -> u64 {
        if self.has_long_rows() { size_of::<ChunkIndex>() as u64 } else { disk::EROFS_BLOCK_MAP_ENTRY_SIZE }
    }

    pub(super) fn is_wide(&self) -> bool {
        self.wide
    }

    /// Length after an inode and xattrs of `start` bytes, with padding.
    pub(super) fn len(&self, start: u64) -> u64 {
        start.next_multiple_of(self.row_len()) - start + self.blocks.len() as u64 * self.row_len()
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, start: u64) {
        out.resize(out.len() + (start.next_multiple_of(self.row_len()) - start) as usize, 0);
        for &block in &self.blocks {
            if self.has_long_rows() {
                let hole = if self.wide { disk::EROFS_NULL_ADDR_48 } else { disk::EROFS_NULL_ADDR_32.into() };
                let block = block.unwrap_or(hole);
                let row = ChunkIndex {
                    startblk_hi: ((block >> 32) as u16).into(),
                    device_id: 0.into(),
                    startblk_lo: (block as u32).into(),
                };
                out.extend_from_slice(row.as_bytes());
            } else {
                let block = block.map_or(disk::EROFS_NULL_ADDR_32, |block| block as u32);
                out.extend_from_slice(&block.to_le_bytes());
            }
        }
    }
}

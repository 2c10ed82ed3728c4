//! Lookup tables (fragments, inodes by number): rows of one length in metadata blocks, with a list of the blocks' positions.
//!
//! Owns finding and reading rows. Invariant: the list was read whole and its positions rise inside the image; rows are
//! decoded only when asked for, so a count from the superblock never makes memory. Knows no row.

use crate::bits::{Endian, Fields};
use crate::corruption::{Corruption, Place};
use crate::disk::SQUASHFS_METADATA_SIZE;
use crate::metadata::{Cursor, Metadata, Position, Region};
use packfs_core::{Image, Result};

/// A lookup table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Where each metadata block starts in the image.
    pub(crate) positions: Vec<u64>,
    /// The blocks, from the first up to the list.
    pub(crate) region: Region,
    /// Where the list of positions starts.
    pub(crate) list_start: u64,
    pub(crate) kind: TableKind,
}

/// How a table is called, how long it is, and how it is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableKind {
    pub(crate) name: &'static str,
    pub(crate) block_name: &'static str,
    /// Rows it has.
    pub(crate) count: u32,
    /// Bytes a row.
    pub(crate) row_len: usize,
    /// Bytes a position.
    pub(crate) position_len: usize,
    pub(crate) endian: Endian,
}

impl TableKind {
    /// Length of the list of positions, in bytes.
    fn list_len(self) -> u64 {
        let rows_len = u64::from(self.count) * self.row_len as u64;
        rows_len.div_ceil(SQUASHFS_METADATA_SIZE as u64) * self.position_len as u64
    }

    fn position(self, bytes: &[u8]) -> u64 {
        match bytes {
            &[a, b, c, d] => u64::from(self.endian.u32([a, b, c, d])),
            _ => bytes.first_chunk().map_or(0, |bytes| self.endian.u64(*bytes)),
        }
    }

    fn rows_a_block(self) -> u32 {
        (SQUASHFS_METADATA_SIZE / self.row_len) as u32
    }
}

impl Table {
    /// Reads the list of positions at `list_start`, which has to end by `limit`; no block may start before `min`.
    pub(crate) fn open(
        image: &dyn Image,
        kind: TableKind,
        list_start: u64,
        mut min: u64,
        limit: u64,
    ) -> Result<Table> {
        let list_len = kind.list_len();
        // What the image really holds bounds the list before memory is taken for it.
        if list_start.checked_add(list_len).is_none_or(|end| end > limit) {
            return Err(Corruption::TableEnd { table: kind.name, start: list_start, list_len, limit }.into());
        }
        let mut list = vec![0; list_len as usize];
        image.read_exact_at(list_start, &mut list)?;
        let positions: Vec<u64> =
            list.chunks_exact(kind.position_len).map(|word| kind.position(word)).collect();
        for (index, &found) in positions.iter().enumerate() {
            if found < min || found >= list_start {
                let fault =
                    Corruption::TablePosition { table: kind.name, index, found, min, end: list_start };
                return Err(fault.into());
            }
            min = found + 1;
        }
        let start = positions.first().copied().unwrap_or(list_start);
        let region = Region { block_name: kind.block_name, start, end: list_start };
        Ok(Table { positions, region, list_start, kind })
    }

    /// Where its blocks start.
    pub(crate) fn start(&self) -> u64 {
        self.region.start
    }

    /// Where its list of positions ends.
    pub(crate) fn list_end(&self) -> u64 {
        self.list_start + (self.positions.len() * self.kind.position_len) as u64
    }

    /// Row `index`, of which the first `N` bytes matter; `None` if the table has fewer rows.
    pub(crate) fn row<const N: usize>(&self, metadata: &Metadata, index: u32) -> Result<Option<Fields<N>>> {
        debug_assert!(N <= self.kind.row_len);
        if index >= self.kind.count {
            return Ok(None);
        }
        let rows_a_block = self.kind.rows_a_block();
        let Some(&at) = self.positions.get((index / rows_a_block) as usize) else { return Ok(None) };
        let block = metadata.block(&self.region, at)?;
        let start = (index % rows_a_block) as usize * self.kind.row_len;
        let row = block.bytes.get(start..start + self.kind.row_len).and_then(|row| row.first_chunk());
        match row {
            Some(row) => Ok(Some(Fields::new(*row, self.kind.endian))),
            None => {
                let place = Place::at(self.region.block_name, at);
                Err(Corruption::TableRow { place, index: u64::from(index) }.into())
            }
        }
    }

    /// Every row, in order, each block decoded once.
    pub(crate) fn each_row<const N: usize>(
        &self,
        metadata: &Metadata,
        mut visit: impl FnMut(u32, Fields<N>) -> Result<()>,
    ) -> Result<()> {
        let mut index = 0;
        for &at in &self.positions {
            let mut cursor =
                Cursor::new(metadata, self.region, self.region.block_name, Position { at, offset: 0 })?;
            for _ in 0..self.kind.rows_a_block().min(self.kind.count - index) {
                if cursor.rest().len() < self.kind.row_len {
                    let place = Place::at(self.region.block_name, at);
                    return Err(Corruption::TableRow { place, index: u64::from(index) }.into());
                }
                let row = cursor.fields()?;
                cursor.skip((self.kind.row_len - N) as u64)?;
                visit(index, row)?;
                index += 1;
            }
        }
        Ok(())
    }
}

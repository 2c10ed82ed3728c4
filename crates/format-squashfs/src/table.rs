//! Lookup tables (fragments, ids, export, xattr ids): rows of one length in metadata blocks, with a list of the blocks'
//! positions.
//!
//! Owns finding and reading rows. Invariant: the list was read whole and its positions rise inside the image; rows are
//! decoded only when asked for, so a count from the superblock never makes memory. Knows no row.

use crate::corruption::{Corruption, Place};
use crate::disk::{SQUASHFS_METADATA_SIZE, SuperBlock};
use crate::metadata::{Cursor, Metadata, Position, Region};
use packfs_core::{Image, Result};
use std::mem::size_of;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A lookup table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// What it is called in messages.
    pub(crate) name: &'static str,
    /// Rows it has.
    pub(crate) count: u32,
    /// Bytes a row.
    row_len: usize,
    /// Where each metadata block starts in the image.
    pub(crate) positions: Vec<u64>,
    /// The blocks, from the first up to the list.
    pub(crate) region: Region,
    /// Where the list of positions starts.
    pub(crate) list_start: u64,
}

/// How a table is called, and how long its rows are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableKind {
    pub(crate) name: &'static str,
    pub(crate) block_name: &'static str,
    pub(crate) row_len: usize,
}

pub(crate) const FRAGMENTS: TableKind =
    TableKind { name: "fragment table", block_name: "fragment table block", row_len: 16 };
pub(crate) const EXPORT: TableKind =
    TableKind { name: "export table", block_name: "export table block", row_len: 8 };
pub(crate) const IDS: TableKind = TableKind { name: "id table", block_name: "id table block", row_len: 4 };
pub(crate) const XATTR_IDS: TableKind =
    TableKind { name: "xattr id table", block_name: "xattr id table block", row_len: 16 };

impl TableKind {
    /// Length of the list of positions of a table with `count` rows, in bytes.
    pub(crate) fn list_len(self, count: u32) -> u64 {
        (u64::from(count) * self.row_len as u64).div_ceil(SQUASHFS_METADATA_SIZE as u64) * 8
    }
}

impl Table {
    /// Reads the list of positions at `list_start`, which has to end by `limit`. `count` is at least 1.
    pub(crate) fn open(
        image: &dyn Image,
        kind: TableKind,
        count: u32,
        list_start: u64,
        limit: u64,
    ) -> Result<Table> {
        let list_len = kind.list_len(count);
        // What the image really holds bounds the list before memory is taken for it.
        if list_start.checked_add(list_len).is_none_or(|end| end > limit) {
            return Err(Corruption::TableEnd { table: kind.name, start: list_start, list_len, limit }.into());
        }
        let mut list = vec![0; list_len as usize];
        image.read_exact_at(list_start, &mut list)?;
        let positions: Vec<u64> =
            list.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let mut min = size_of::<SuperBlock>() as u64;
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
        Ok(Table { name: kind.name, count, row_len: kind.row_len, positions, region, list_start })
    }

    /// Where its blocks start.
    pub(crate) fn start(&self) -> u64 {
        self.region.start
    }

    /// Where its list of positions ends.
    pub(crate) fn list_end(&self) -> u64 {
        self.list_start + self.positions.len() as u64 * 8
    }

    /// Row `index`; `None` if the table has fewer rows.
    pub(crate) fn row<T: FromBytes + IntoBytes + Immutable>(
        &self,
        metadata: &Metadata,
        index: u32,
    ) -> Result<Option<T>> {
        debug_assert_eq!(size_of::<T>(), self.row_len);
        if index >= self.count {
            return Ok(None);
        }
        let rows_a_block = (SQUASHFS_METADATA_SIZE / self.row_len) as u32;
        let Some(&at) = self.positions.get((index / rows_a_block) as usize) else { return Ok(None) };
        let block = metadata.block(&self.region, at)?;
        let start = (index % rows_a_block) as usize * self.row_len;
        match block.bytes.get(start..).map(T::read_from_prefix) {
            Some(Ok((row, _))) => Ok(Some(row)),
            _ => {
                let place = Place::at(self.region.block_name, at);
                Err(Corruption::TableRow { place, index: u64::from(index) }.into())
            }
        }
    }

    /// Every row, in order, each block decoded once.
    pub(crate) fn each_row<T: FromBytes + IntoBytes + Immutable>(
        &self,
        metadata: &Metadata,
        mut visit: impl FnMut(u32, T) -> Result<()>,
    ) -> Result<()> {
        let rows_a_block = (SQUASHFS_METADATA_SIZE / self.row_len) as u32;
        let mut index = 0;
        for &at in &self.positions {
            let mut cursor =
                Cursor::new(metadata, self.region, self.region.block_name, Position { at, offset: 0 })?;
            for _ in 0..rows_a_block.min(self.count - index) {
                if cursor.rest().len() < self.row_len {
                    let place = Place::at(self.region.block_name, at);
                    return Err(Corruption::TableRow { place, index: u64::from(index) }.into());
                }
                visit(index, cursor.read()?)?;
                index += 1;
            }
        }
        Ok(())
    }
}

//! Lookup tables (fragments, exports, ids, sets of attributes): rows of one length in metadata
//! blocks, with a list of the blocks' positions.
//!
//! Owns lookup and decoding of rows. Invariant: the list was read completely and its positions rise
//! within the image; rows are decoded on demand, so a count in the superblock never allocates
//! memory. Independent of row types.

use crate::blocks::Metadata;
use crate::cursor::{Cursor, Position};
use crate::endian::Endian;
use crate::fault::MetadataFault;
use crate::place::Place;
use crate::stored::{Region, SQUASHFS_METADATA_SIZE};
use packfs_core::{Error, Image, Result, u32_of, usize_of};
use packfs_format::{OnDisk, structure, units::*};
use std::mem::size_of;
use std::num::NonZeroU32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Start of each metadata block in the image.
    pub(crate) positions: Vec<u64>,
    /// The blocks, up to the list.
    pub(crate) region: Region,
    pub(crate) list_start: u64,
    pub(crate) count: u32,
    pub(crate) kind: TableKind,
}

/// Name and storage of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableKind {
    pub(crate) name: &'static str,
    pub(crate) block_name: &'static str,
    pub(crate) row_len: usize,
    pub(crate) position_len: usize,
    pub(crate) endian: Endian,
}

impl TableKind {
    pub(crate) fn list_len(self, count: u32) -> u64 {
        let rows_len = u64::from(count).times(self.row_len as u64);
        rows_len.div_ceil(SQUASHFS_METADATA_SIZE as u64).times(self.position_len as u64)
    }

    fn position(self, bytes: &[u8]) -> u64 {
        match bytes {
            &[a, b, c, d] => u64::from(self.endian.u32([a, b, c, d])),
            _ => bytes.first_chunk().map_or(0, |bytes| self.endian.u64(*bytes)),
        }
    }

    fn rows_a_block(self) -> NonZeroU32 {
        let rows = SQUASHFS_METADATA_SIZE.quotient(self.row_len);
        NonZeroU32::new(u32_of(rows as u64)).unwrap_or(NonZeroU32::MIN)
    }
}

impl Table {
    /// Reads the list of positions at `list_start`, which must end by `limit`; blocks must not
    /// start before `min`. `count` is at least 1.
    pub(crate) fn open(
        image: &dyn Image,
        kind: TableKind,
        count: u32,
        list_start: u64,
        mut min: u64,
        limit: u64,
    ) -> Result<Table> {
        let list_len = kind.list_len(count);
        // The length of the image bounds the list before memory is allocated.
        if list_start.checked_add(list_len).is_none_or(|end| end > limit) {
            return Err(
                MetadataFault::TableEnd { table: kind.name, start: list_start, list_len, limit }.into()
            );
        }
        let mut list = vec![0; usize_of(list_len)];
        image.read_exact_at(list_start, &mut list)?;
        let positions: Vec<u64> =
            list.chunks_exact(kind.position_len).map(|word| kind.position(word)).collect();
        for (index, &found) in positions.iter().enumerate() {
            if found < min || found >= list_start {
                let fault =
                    MetadataFault::TablePosition { table: kind.name, index, found, min, end: list_start };
                return Err(fault.into());
            }
            min = found.plus(1);
        }
        let start = positions.first().copied().unwrap_or(list_start);
        let region = Region { block_name: kind.block_name, start, end: list_start };
        Ok(Table { positions, region, list_start, count, kind })
    }

    pub(crate) fn start(&self) -> u64 {
        self.region.start
    }

    pub(crate) fn list_end(&self) -> u64 {
        self.list_start.plus(self.kind.list_len(self.count))
    }

    /// Returns the start of the block of a row; `None` if the table has fewer rows.
    pub(crate) fn block_of(&self, index: u32) -> Option<u64> {
        let number = (index < self.count).then_some(index / self.kind.rows_a_block())?;
        self.positions.get(number as usize).copied()
    }

    /// Returns row `index`, or its start of the length of `T`; `None` if the table has fewer rows.
    pub(crate) fn row<T: OnDisk + FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned>(
        &self,
        metadata: &Metadata,
        index: u32,
    ) -> Result<Option<T>> {
        debug_assert!(size_of::<T>() <= self.kind.row_len);
        let Some(at) = self.block_of(index) else { return Ok(None) };
        let block = metadata.block(&self.region, at)?;
        let mut rows = block.bytes.chunks_exact(self.kind.row_len);
        match rows.nth((index % self.kind.rows_a_block()) as usize).and_then(|row| structure(row, 0)) {
            Some(row) => Ok(Some(row)),
            None => Err(self.row_fault(at, index)),
        }
    }

    /// Calls `visit` for every row, in order; decodes each block once.
    pub(crate) fn each_row<T: OnDisk + FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned>(
        &self,
        metadata: &Metadata,
        mut visit: impl FnMut(u32, T) -> Result<()>,
    ) -> Result<()> {
        debug_assert!(size_of::<T>() <= self.kind.row_len);
        let rows_a_block = self.kind.rows_a_block().get();
        for (&at, first) in self.positions.iter().zip((0..self.count).step_by(rows_a_block as usize)) {
            let mut cursor =
                Cursor::new(metadata, self.region, self.region.block_name, Position { at, offset: 0 })?;
            for index in first..self.count.min(end_of(first, rows_a_block)) {
                if cursor.rest().len() < self.kind.row_len {
                    return Err(self.row_fault(at, index));
                }
                let row = cursor.read()?;
                cursor.skip(self.kind.row_len.minus(size_of::<T>()) as u64)?;
                visit(index, row)?;
            }
        }
        Ok(())
    }

    fn row_fault(&self, at: u64, index: u32) -> Error {
        let place = Place::at(self.region.block_name, at);
        MetadataFault::TableRow { place, index: u64::from(index) }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_testkit::BytesImage;

    /// A table of 2,049 rows of 4 bytes at offset 200, of which no block may start before 96.
    fn opened(endian: Endian, position_len: usize, positions: [u64; 2]) -> Result<Table> {
        let kind =
            TableKind { name: "id table", block_name: "id table block", row_len: 4, position_len, endian };
        let mut bytes = vec![0; 200];
        for position in positions {
            let at = bytes.len();
            bytes.resize(at + position_len, 0);
            endian.put(&mut bytes[at..], 0, position_len as u32 * 8, position);
        }
        let limit = bytes.len() as u64;
        Table::open(&BytesImage(bytes), kind, 2049, 200, 96, limit)
    }

    #[test]
    fn positions_rise_between_the_superblock_and_their_list() {
        for endian in [Endian::Little, Endian::Big] {
            for position_len in [4, 8] {
                for (positions, bad) in [([96, 96], 1), ([150, 97], 1), ([200, 96], 0), ([95, 96], 0)] {
                    let error = opened(endian, position_len, positions).unwrap_err().to_string();
                    assert!(error.contains(&format!("id table: position {bad} is")), "{error}");
                }
                let table = opened(endian, position_len, [96, 199]).unwrap();
                assert_eq!(table.positions, [96, 199]);
                assert_eq!((table.start(), table.list_end()), (96, 200 + 2 * position_len as u64));
            }
        }
    }

    #[test]
    fn a_list_goes_no_further_than_it_may() {
        let kind = TableKind {
            name: "id table",
            block_name: "id table block",
            row_len: 4,
            position_len: 8,
            endian: Endian::Little,
        };
        for (count, list_start, limit) in [(2049, 200, 215), (1, u64::MAX, u64::MAX), (u32::MAX, 200, 216)] {
            let error = Table::open(&BytesImage(vec![0; 300]), kind, count, list_start, 96, limit);
            assert!(error.unwrap_err().to_string().contains("has to end by"), "{count} {list_start} {limit}");
        }
    }
}

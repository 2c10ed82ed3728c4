//! The index: position, length, and codec of each block.
//!
//! Owns the reading of rows of every version. Rows are read on demand, several at a time. For an
//! index of sizes only, one sum in [`STRIDE`] is kept. Invariant: returned ranges are within the
//! file.

use crate::corruption::Corruption;
use crate::disk::*;
use crate::open::{Geometry, Version};
use packfs_codec::Algorithm;
use packfs_core::{Image, Result, len_of, parts_of, range_at, usize_of};
use packfs_format::{structure, units::*};
use std::ops::Range;

const ROWS_AT_ONCE: u64 = 1024;
/// Distance of the stored sums of sizes, in blocks.
const STRIDE: u64 = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredBlock {
    pub(crate) block: u64,
    pub(crate) start: u64,
    pub(crate) len: u32,
    /// `None`: uncompressed.
    pub(crate) algorithm: Option<Algorithm>,
}

impl StoredBlock {
    pub(crate) fn range(&self) -> Range<u64> {
        range_at(self.start, self.len.into())
    }
}

/// Starts of blocks that rows do not contain.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Start of every [`STRIDE`]th block of a file of 3.0.
    starts: Vec<u64>,
}

impl Index {
    /// Sums an index of sizes only.
    ///
    /// Errors: `Corrupt` if the blocks are longer than the file, `Io`.
    pub(crate) fn open(image: &dyn Image, geometry: &Geometry) -> Result<Index> {
        let mut starts = Vec::new();
        if geometry.version == Version::V3_0 {
            let mut at = geometry.data.start;
            for blocks in parts_of(0..geometry.block_count, STRIDE) {
                starts.push(at);
                let sizes = read_rows(image, geometry.index.start, blocks, 4)?;
                at = sizes.chunks_exact(4).map(number).fold(at, end_of);
            }
            let limit = geometry.data.end;
            if at > limit {
                return Err(Corruption::SizesEnd { found: at, limit }.into());
            }
        }
        Ok(Index { starts })
    }

    /// Calls `visit` for each of these blocks, in order, with its decoded row or its fault, until
    /// `visit` fails.
    ///
    /// Errors: those of `visit`, `Io`.
    pub(crate) fn each(
        &self,
        image: &dyn Image,
        geometry: &Geometry,
        blocks: Range<u64>,
        visit: &mut dyn FnMut(u64, Result<StoredBlock>) -> Result<bool>,
    ) -> Result<()> {
        let Range { start, end } = blocks;
        // Sizes add up from a stored sum.
        let before = if geometry.version == Version::V3_0 { start % STRIDE } else { 0 };
        let from = start.minus(before);
        for part in parts_of(from..end.min(geometry.block_count), ROWS_AT_ONCE) {
            for row in self.rows(image, geometry, part)? {
                if row.block < start {
                    continue;
                }
                let checked = row.check(geometry);
                if !visit(row.block, checked)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn rows(&self, image: &dyn Image, geometry: &Geometry, blocks: Range<u64>) -> Result<Vec<Row>> {
        let row_len = geometry.version.row_len();
        let first = blocks.start;
        // If rows are offsets, the next one is the end of a block.
        let further = u64::from(!matches!(geometry.version, Version::Accelerated | Version::V3_0));
        let end = blocks.end.plus(further);
        let raw = read_rows(image, geometry.index.start, first..end, row_len)?;
        let raw: Vec<&[u8]> = raw.chunks_exact(usize_of(row_len)).collect();
        let pairs = (first..).zip(raw.iter().copied().zip(raw.iter().copied().skip(1)));
        let mut rows = Vec::with_capacity(usize_of(len_of(&blocks)));
        match geometry.version {
            Version::Accelerated => {
                let infos = raw.iter().filter_map(|row| structure::<BlockInfo>(row, 0));
                for (block, info) in (first..).zip(infos) {
                    let (start, len) = (info.offset.get(), u64::from(info.size.get()));
                    rows.push(Row { block, start, end: end_of(start, len), how: How::Zlib });
                }
            }
            Version::V3_0 => {
                let mut start = self.starts.get(usize_of(first / STRIDE)).copied().unwrap_or(u64::MAX);
                for (block, row) in (first..).zip(&raw) {
                    let end = end_of(start, number(row));
                    rows.push(Row { block, start, end, how: How::Zlib });
                    start = end;
                }
            }
            Version::Alpha3 => {
                let flags = read_rows(image, geometry.flags.start, blocks, 4)?;
                let flags = flags.as_chunks().0.iter().map(|flags| How::Flags(u32::from_be_bytes(*flags)));
                for ((block, (this, next)), how) in pairs.zip(flags) {
                    rows.push(Row { block, start: number(this), end: number(next), how });
                }
            }
            Version::V4Header | Version::V4Footer => {
                for (block, (this, next)) in pairs {
                    let (this, next) = (number(this), number(next) & OFFSET_MASK);
                    let how = How::Method(this >> METHOD_SHIFT);
                    rows.push(Row { block, start: this & OFFSET_MASK, end: next, how });
                }
            }
            Version::V1_0 => {
                for (block, (this, next)) in pairs {
                    let offset = |row: &[u8]| row.iter().rev().fold(0, push_byte);
                    rows.push(Row { block, start: offset(this), end: offset(next), how: How::Zlib });
                }
            }
            Version::V0_68 | Version::V2_0 => {
                for (block, (this, next)) in pairs {
                    rows.push(Row { block, start: number(this), end: number(next), how: How::Zlib });
                }
            }
        }
        Ok(rows)
    }
}

struct Row {
    block: u64,
    start: u64,
    end: u64,
    how: How,
}

/// Storage of a block as its version encodes it.
enum How {
    Zlib,
    Method(u64),
    Flags(u32),
}

impl Row {
    fn check(&self, geometry: &Geometry) -> Result<StoredBlock> {
        let Row { block, start, end, .. } = *self;
        let data = &geometry.data;
        if !data.contains(&start) {
            return Err(Corruption::BlockStart { block, found: start, min: data.start, end: data.end }.into());
        }
        if end <= start || end > data.end {
            return Err(Corruption::BlockEnd { block, start, found: end, limit: data.end }.into());
        }
        let (len, max) = (len_of(&(start..end)), geometry.stored_max());
        let Some(stored_len) = u32::try_from(len).ok().filter(|_| len <= max) else {
            return Err(Corruption::BlockLength { block, found: len, max }.into());
        };
        let algorithm = self.algorithm()?;
        // The last one may be stored up to the end of the disk, or of a block.
        let wanted = geometry.block_holds(block);
        if algorithm.is_none() && len != wanted && len != u64::from(geometry.block_len) {
            return Err(Corruption::StoredLength { block, found: len, wanted }.into());
        }
        Ok(StoredBlock { block, start, len: stored_len, algorithm })
    }

    fn algorithm(&self) -> Result<Option<Algorithm>> {
        let block = self.block;
        Ok(match self.how {
            How::Zlib | How::Method(METHOD_ZLIB) | How::Flags(FLAG_ZLIB) => Some(Algorithm::Zlib),
            How::Method(METHOD_STORED) | How::Flags(FLAG_STORED) => None,
            How::Method(METHOD_XZ) | How::Flags(FLAG_XZ) => Some(Algorithm::Xz),
            How::Method(METHOD_LZ4) | How::Flags(FLAG_LZ4) => Some(Algorithm::Lz4),
            How::Method(METHOD_LZO) | How::Flags(FLAG_LZO) => Some(Algorithm::Lzo),
            How::Method(found) => return Err(Corruption::Method { block, found }.into()),
            How::Flags(found) => return Err(Corruption::Flags { block, found }.into()),
        })
    }
}

fn read_rows(image: &dyn Image, table: u64, rows: Range<u64>, row_len: u64) -> Result<Vec<u8>> {
    let mut raw = vec![0; usize_of(len_of(&rows).times(row_len))];
    image.read_exact_at(table.plus(rows.start.times(row_len)), &mut raw)?;
    Ok(raw)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, push_byte)
}

fn push_byte(number: u64, byte: &u8) -> u64 {
    number << 8 | u64::from(*byte)
}

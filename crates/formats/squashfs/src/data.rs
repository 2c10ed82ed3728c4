//! Contents of files: size words and fragments converted to extents.
//!
//! Owns the rules of size words. Invariant: every returned range is within the image's data area,
//! and every slice within the maximum decoded length of its block. Never reads the data itself, and
//! never keeps more than one word.

use crate::block_index::{Checkpoint, STRIDE};
use crate::cursor::Cursor;
use crate::fault::MetadataFault;
use crate::inode::{raw_inode, word_count};
use crate::place::Place;
use crate::raw::{RawFile, RawInode, RawKind};
use crate::records::{FragmentRow, Layout, Records, StoredData};
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{Result, blocks_of, u32_of};
use packfs_format::{Extent, ExtentFrom, Extents, InodeId, units::*};
use std::ops::{ControlFlow, Range};

pub(crate) fn file_extents<R: Records>(
    records: &R,
    id: InodeId,
    range: Range<u64>,
    visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
) -> Result<()> {
    let raw = raw_inode(records, id)?;
    let RawKind::File(file) = raw.kind else { return Err(raw.not_a("file")) };
    let range = range.start..range.end.min(file.file_size);
    if range.is_empty() {
        return Ok(());
    }
    let blocks_len = blocks_len(records, &file);
    let mut extents = Extents::new(range.clone(), visit);
    let mut walked = Ok(ControlFlow::Continue(()));
    if range.start < blocks_len {
        walked = block_extents(records, id, &raw, &file, &mut extents);
    }
    if range.end > blocks_len && matches!(walked, Ok(ControlFlow::Continue(()))) {
        walked = tail_extent(records, &raw, &file).map(|tail| extents.push(tail));
    }
    extents.finish(walked.map(drop))
}

/// Returns the length of a file's blocks, the last one counted as full.
pub(crate) fn blocks_len<R: Records>(records: &R, file: &RawFile) -> u64 {
    nth_at(0, word_count(records, file), records.layout().block_len.into())
}

fn block_extents<R: Records>(
    records: &R,
    id: InodeId,
    raw: &RawInode,
    file: &RawFile,
    extents: &mut Extents<'_>,
) -> Result<ControlFlow<()>> {
    let block_len = u64::from(records.layout().block_len);
    let words = word_count(records, file);
    let range = extents.range();
    let first = blocks_of(&range, block_len).start;
    let from = if first >= STRIDE { records.block_index().before(id, first) } else { None };
    let from = from.unwrap_or(Checkpoint { index: 0, position: raw.tail, data_at: file.start_block });
    let mut cursor =
        Cursor::resume(records.metadata(), records.layout().inodes, "block size", from.position)?;
    let mut data_at = from.data_at;
    for index in from.index..words {
        let offset = index.times(block_len);
        if offset >= range.end {
            break;
        }
        let here = || Checkpoint { index, position: cursor.position(), data_at };
        if index % STRIDE == 0 && index > 0 {
            records.block_index().keep(id, here());
        }
        if index == first && first > from.index.max(STRIDE) {
            records.block_index().keep_recent(id, here());
        }
        let place = cursor.place();
        let word = records.size_word(&mut cursor)?;
        let len = block_len.min(file.file_size.minus(offset));
        let (source, stored_len) = block_source(records, word, u32_of(len), data_at, place)?;
        data_at = end_of(data_at, stored_len);
        if index >= first && extents.push(Extent { offset, len, from: source }).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Returns the source of a block's `len` bytes, and its stored length.
fn block_source<R: Records>(
    records: &R,
    word: u32,
    len: u32,
    at: u64,
    place: Place,
) -> Result<(ExtentFrom, u64)> {
    if word == 0 && records.shape().has_holes {
        return Ok((ExtentFrom::Hole, 0));
    }
    let stored = records.stored_data(word, place)?;
    let layout = records.layout();
    check_data(layout, at, stored.len, place)?;
    let from = if stored.compressed {
        let block = BlockRef {
            offset: at,
            stored_len: stored.len,
            decoded_len: len,
            decodes_to: DecodedLen::Exactly,
            zero_padded: false,
            algorithm: Some(layout.algorithm),
        };
        ExtentFrom::Block { block, start: 0 }
    } else if stored.len == len {
        ExtentFrom::Stored(at)
    } else {
        return Err(MetadataFault::StoredLength { place, found: stored.len, wanted: len }.into());
    };
    Ok((from, u64::from(stored.len)))
}

pub(crate) fn each_stored_block<R: Records>(
    records: &R,
    raw: &RawInode,
    file: &RawFile,
    mut visit: impl FnMut(StoredData),
) -> Result<()> {
    each_block(records, raw, file, |_, stored| {
        if stored.len > 0 {
            visit(stored);
        }
    })
}

/// Calls `visit` for each of a file's blocks, in file order, with its length in the file; a hole
/// has stored length 0.
pub(crate) fn each_block<R: Records>(
    records: &R,
    raw: &RawInode,
    file: &RawFile,
    mut visit: impl FnMut(u32, StoredData),
) -> Result<()> {
    let words = word_count(records, file);
    if words == 0 {
        return Ok(());
    }
    let layout = records.layout();
    let block_len = u64::from(layout.block_len);
    let mut cursor = Cursor::resume(records.metadata(), layout.inodes, "block size", raw.tail)?;
    let mut data_at = file.start_block;
    for index in 0..words {
        let place = cursor.place();
        let word = records.size_word(&mut cursor)?;
        let len = block_len.min(file.file_size.minus(index.times(block_len)));
        let (from, stored_len) = block_source(records, word, u32_of(len), data_at, place)?;
        let compressed = matches!(from, ExtentFrom::Block { .. });
        visit(u32_of(len), StoredData { len: u32_of(stored_len), compressed });
        data_at = end_of(data_at, stored_len);
    }
    Ok(())
}

/// Returns every row of the fragment table, checked: start and length in the image.
pub(crate) fn fragment_rows<R: Records>(records: &R) -> Result<Vec<(u64, StoredData)>> {
    let mut rows = Vec::new();
    records.each_fragment_row(|_, row| {
        rows.push(check_fragment(records, row, Place::at("fragment", row.start_block))?);
        Ok(())
    })?;
    Ok(rows)
}

/// Errors: data outside the data area.
fn check_data(layout: &Layout, start: u64, len: u32, place: Place) -> Result<()> {
    let Range { start: min, end } = layout.data;
    let len = u64::from(len);
    if start < min || start.checked_add(len).is_none_or(|data_end| data_end > end) {
        return Err(MetadataFault::DataRange { place, start, len, min, end }.into());
    }
    Ok(())
}

pub(crate) fn fragment<R: Records>(records: &R, index: u32, place: Place) -> Result<(u64, StoredData)> {
    let count = records.layout().fragment_count();
    let row = records.fragment_row(index)?;
    let row = row.ok_or(MetadataFault::FragmentIndex { place, found: index, count })?;
    check_fragment(records, row, place)
}

pub(crate) fn check_fragment<R: Records>(
    records: &R,
    row: FragmentRow,
    place: Place,
) -> Result<(u64, StoredData)> {
    let place = Place { what: "fragment", ..place };
    let stored = records.stored_data(row.size, place)?;
    if stored.len == 0 {
        return Err(MetadataFault::EmptyFragment { place }.into());
    }
    check_data(records.layout(), row.start_block, stored.len, place)?;
    Ok((row.start_block, stored))
}

pub(crate) fn tail_extent<R: Records>(records: &R, raw: &RawInode, file: &RawFile) -> Result<Extent> {
    let Layout { block_len, algorithm, .. } = *records.layout();
    let offset = blocks_len(records, file);
    let (at, stored) = fragment(records, file.fragment, raw.place)?;
    let len = u32_of(file.file_size.minus(offset));
    let start = file.offset;
    let max = if stored.compressed { block_len } else { stored.len };
    if start.checked_add(len).is_none_or(|end| end > max) {
        return Err(MetadataFault::Tail { place: raw.place, start, len, max }.into());
    }
    let from = if stored.compressed {
        let block = BlockRef {
            offset: at,
            stored_len: stored.len,
            decoded_len: block_len,
            decodes_to: DecodedLen::AtMost,
            zero_padded: false,
            algorithm: Some(algorithm),
        };
        ExtentFrom::Block { block, start }
    } else {
        ExtentFrom::Stored(end_of(at, start.into()))
    };
    Ok(Extent { offset, len: u64::from(len), from })
}

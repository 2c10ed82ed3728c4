//! Contents of files: size words and fragments turned into extents.
//!
//! Owns the reading of size words. Invariant: every range handed out lies in the image's data area and every slice of a
//! block within what the block may decode to. Never reads data itself, and never holds more words than one.

use crate::bits::Fields;
use crate::block_index::{Checkpoint, STRIDE};
use crate::corruption::{Corruption, Place};
use crate::disk::*;
use crate::inode::{RawFile, RawInode, RawKind, not_a};
use crate::metadata::Cursor;
use crate::volume::LegacyVolume;
use packfs_core::{BlockRef, DecodedLen, Extent, ExtentFrom, InodeId, Result};
use std::ops::{ControlFlow, Range};

/// A size word taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredData {
    pub(crate) len: u32,
    pub(crate) compressed: bool,
}

/// Checks a size word of a block or fragment of at most `max` bytes.
fn stored_data(word: u32, max: u32, place: Place) -> Result<StoredData> {
    let len = word & !SQUASHFS_COMPRESSED_BIT_BLOCK;
    if len == 0 || len > max {
        return Err(Corruption::SizeWord { place, found: word, max }.into());
    }
    Ok(StoredData { len, compressed: word & SQUASHFS_COMPRESSED_BIT_BLOCK == 0 })
}

/// What version 2 would say of a size word of version 1, where 0 stands for 32,768.
fn widened(word: u16) -> u32 {
    let len = match word & !SQUASHFS_COMPRESSED_BIT {
        0 => u32::from(SQUASHFS_COMPRESSED_BIT),
        len => u32::from(len),
    };
    if word & SQUASHFS_COMPRESSED_BIT == 0 { len } else { len | SQUASHFS_COMPRESSED_BIT_BLOCK }
}

/// A row of the fragment table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FragmentRow {
    pub(crate) start_block: u64,
    pub(crate) size: u32,
}

/// A row of version 2.
fn short_row(mut fields: Fields<8>) -> FragmentRow {
    FragmentRow { start_block: fields.take(32), size: fields.word(32) }
}

/// A row of version 3, without the word at its end that nobody uses.
fn long_row(mut fields: Fields<12>) -> FragmentRow {
    FragmentRow { start_block: fields.take(64), size: fields.word(32) }
}

/// Cuts extents to a range, joins those that go on, and hands them out.
struct Extents<'a> {
    range: Range<u64>,
    pending: Option<Extent>,
    visit: &'a mut dyn FnMut(Extent) -> ControlFlow<()>,
}

impl Extents<'_> {
    fn push(&mut self, extent: Extent) -> ControlFlow<()> {
        let start = extent.offset.max(self.range.start);
        let end = (extent.offset + extent.len).min(self.range.end);
        if start >= end {
            return ControlFlow::Continue(());
        }
        let cut = start - extent.offset;
        let from = match extent.from {
            ExtentFrom::Hole => ExtentFrom::Hole,
            ExtentFrom::Stored(at) => ExtentFrom::Stored(at + cut),
            ExtentFrom::Block { block, start } => ExtentFrom::Block { block, start: start + cut as u32 },
        };
        let extent = Extent { offset: start, len: end - start, from };
        if let Some(pending) = &mut self.pending {
            let goes_on = match (pending.from, from) {
                (ExtentFrom::Hole, ExtentFrom::Hole) => true,
                (ExtentFrom::Stored(at), ExtentFrom::Stored(next)) => at + pending.len == next,
                _ => false,
            };
            if goes_on {
                pending.len += extent.len;
                return ControlFlow::Continue(());
            }
        }
        match self.pending.replace(extent) {
            Some(done) => (self.visit)(done),
            None => ControlFlow::Continue(()),
        }
    }

    fn finish(&mut self) -> ControlFlow<()> {
        match self.pending.take() {
            Some(last) => (self.visit)(last),
            None => ControlFlow::Continue(()),
        }
    }
}

impl LegacyVolume {
    /// The extents of a file that cover `range`; see [`packfs_core::Volume::extents`].
    pub(crate) fn file_extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let raw = self.raw_inode(id)?;
        let RawKind::File(file) = raw.kind else { return Err(not_a("file", &raw)) };
        let range = range.start..range.end.min(file.file_size);
        if range.is_empty() {
            return Ok(());
        }
        let mut extents = Extents { range: range.clone(), pending: None, visit };
        let blocks_len = self.word_count(&file).saturating_mul(u64::from(self.geometry.block_len));
        if range.start < blocks_len && self.block_extents(id, &raw, &file, &mut extents)?.is_break() {
            return Ok(());
        }
        if range.end > blocks_len {
            let tail = self.tail_extent(&raw, &file)?;
            if extents.push(tail).is_break() {
                return Ok(());
            }
        }
        let _ = extents.finish();
        Ok(())
    }

    /// The extents of a file's own blocks.
    fn block_extents(
        &self,
        id: InodeId,
        raw: &RawInode,
        file: &RawFile,
        extents: &mut Extents<'_>,
    ) -> Result<ControlFlow<()>> {
        let block_len = u64::from(self.geometry.block_len);
        let words = self.word_count(file);
        let first = extents.range.start / block_len;
        let from = if first >= STRIDE { self.block_index.before(id, first) } else { None };
        let from = from.unwrap_or(Checkpoint { index: 0, position: raw.tail, data_at: file.start_block });
        let mut cursor = Cursor::resume(&self.metadata, self.geometry.inodes, "block size", from.position)?;
        let mut data_at = from.data_at;
        for index in from.index..words {
            let offset = index * block_len;
            if offset >= extents.range.end {
                break;
            }
            if index % STRIDE == 0 && index > 0 {
                self.block_index.keep(id, Checkpoint { index, position: cursor.position(), data_at });
            }
            let place = cursor.place();
            let word = self.block_word(&mut cursor)?;
            let len = block_len.min(file.file_size - offset);
            let (source, stored_len) = self.block_source(word, len as u32, data_at, place)?;
            data_at += stored_len;
            if index >= first && extents.push(Extent { offset, len, from: source }).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The next size word of a file.
    fn block_word(&self, cursor: &mut Cursor<'_>) -> Result<u32> {
        match self.geometry.version().block_word_len() {
            2 => Ok(widened(cursor.fields::<2>()?.half(16))),
            _ => Ok(cursor.fields::<4>()?.word(32)),
        }
    }

    /// Where the `len` bytes of a block come from, and how many bytes it takes in the image.
    fn block_source(&self, word: u32, len: u32, at: u64, place: Place) -> Result<(ExtentFrom, u64)> {
        // Writers of 3.1 make holes; readers of 3.0 that know of them take them there, too.
        if word == 0 && self.geometry.version().major() == 3 {
            return Ok((ExtentFrom::Hole, 0));
        }
        let stored = stored_data(word, self.geometry.block_len, place)?;
        self.check_data(at, stored.len, place)?;
        let from = if stored.compressed {
            let block = BlockRef {
                offset: at,
                stored_len: stored.len,
                decoded_len: len,
                decodes_to: DecodedLen::Exactly,
                zero_padded: false,
                algorithm: Some(self.geometry.algorithm),
            };
            ExtentFrom::Block { block, start: 0 }
        } else if stored.len == len {
            ExtentFrom::Stored(at)
        } else {
            return Err(Corruption::StoredLength { place, found: stored.len, wanted: len }.into());
        };
        Ok((from, u64::from(stored.len)))
    }

    /// Calls `visit` for each of a file's blocks that are no holes, in file order.
    pub(crate) fn each_stored_block(
        &self,
        raw: &RawInode,
        file: &RawFile,
        mut visit: impl FnMut(StoredData),
    ) -> Result<()> {
        let words = self.word_count(file);
        if words == 0 {
            return Ok(());
        }
        let block_len = u64::from(self.geometry.block_len);
        let mut cursor = Cursor::resume(&self.metadata, self.geometry.inodes, "block size", raw.tail)?;
        let mut data_at = file.start_block;
        for index in 0..words {
            let place = cursor.place();
            let word = self.block_word(&mut cursor)?;
            let len = block_len.min(file.file_size - index * block_len);
            let (from, stored_len) = self.block_source(word, len as u32, data_at, place)?;
            if stored_len > 0 {
                let compressed = matches!(from, ExtentFrom::Block { .. });
                visit(StoredData { len: stored_len as u32, compressed });
            }
            data_at += stored_len;
        }
        Ok(())
    }

    /// Checks that data lies where data may lie.
    pub(crate) fn check_data(&self, start: u64, len: u32, place: Place) -> Result<()> {
        let (min, end) = (self.geometry.data_start, self.geometry.data_end);
        let len = u64::from(len);
        if start < min || start.checked_add(len).is_none_or(|data_end| data_end > end) {
            return Err(Corruption::DataRange { place, start, len, min, end }.into());
        }
        Ok(())
    }

    /// Reads and checks a row of the fragment table.
    pub(crate) fn fragment(&self, index: u32, place: Place) -> Result<(u64, StoredData)> {
        let fragments = self.geometry.fragments.as_ref();
        let missing = || Corruption::FragmentIndex {
            place,
            found: index,
            count: fragments.map_or(0, |table| table.kind.count),
        };
        let table = fragments.ok_or_else(missing)?;
        let row = match self.geometry.version().fragment_len() {
            8 => table.row::<8>(&self.metadata, index)?.map(short_row),
            _ => table.row::<12>(&self.metadata, index)?.map(long_row),
        };
        self.check_fragment(row.ok_or_else(missing)?, place)
    }

    /// Every row of the fragment table.
    pub(crate) fn each_fragment(&self, mut visit: impl FnMut(u32, FragmentRow) -> Result<()>) -> Result<()> {
        let Some(table) = &self.geometry.fragments else { return Ok(()) };
        match self.geometry.version().fragment_len() {
            8 => table.each_row::<8>(&self.metadata, |index, fields| visit(index, short_row(fields))),
            _ => table.each_row::<12>(&self.metadata, |index, fields| visit(index, long_row(fields))),
        }
    }

    /// Checks a row of the fragment table.
    pub(crate) fn check_fragment(&self, row: FragmentRow, place: Place) -> Result<(u64, StoredData)> {
        let place = Place { what: "fragment", ..place };
        let stored = stored_data(row.size, self.geometry.block_len, place)?;
        self.check_data(row.start_block, stored.len, place)?;
        Ok((row.start_block, stored))
    }

    /// The extent of a file's tail in its fragment.
    pub(crate) fn tail_extent(&self, raw: &RawInode, file: &RawFile) -> Result<Extent> {
        let offset = file.file_size / u64::from(self.geometry.block_len) * u64::from(self.geometry.block_len);
        let (at, stored) = self.fragment(file.fragment, raw.place)?;
        let len = (file.file_size - offset) as u32;
        let start = file.offset;
        let max = if stored.compressed { self.geometry.block_len } else { stored.len };
        if start.checked_add(len).is_none_or(|end| end > max) {
            return Err(Corruption::Tail { place: raw.place, start, len, max }.into());
        }
        let from = if stored.compressed {
            let block = BlockRef {
                offset: at,
                stored_len: stored.len,
                decoded_len: self.geometry.block_len,
                decodes_to: DecodedLen::AtMost,
                zero_padded: false,
                algorithm: Some(self.geometry.algorithm),
            };
            ExtentFrom::Block { block, start }
        } else {
            ExtentFrom::Stored(at + u64::from(start))
        };
        Ok(Extent { offset, len: u64::from(len), from })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_version_1_are_told_as_those_of_version_2() {
        assert_eq!(widened(700), 700);
        assert_eq!(widened(0x8000 | 700), 0x100_0000 | 700);
        assert_eq!(widened(0x8000), 0x100_8000);
        assert_eq!(widened(0), 32_768);
    }
}

//! Decoding of the records of 1.0 to 3.1.

use crate::legacy::bits::{Fields, ReadFields};
use crate::legacy::corruption::Corruption;
use crate::legacy::volume::LegacyVolume;
use crate::{
    BlockIndex, Cursor, EntryHead, FragmentRow, IndexHead, Layout, Metadata, Place, RawInode, Records,
    RunHeader, SQUASHFS_COMPRESSED_BIT, SQUASHFS_COMPRESSED_BIT_BLOCK, Shape, StoredData,
};
use packfs_core::Result;
use packfs_format::{Inode, InodeId, units::*};

impl Records for LegacyVolume {
    fn layout(&self) -> &Layout {
        &self.geometry.layout
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn block_index(&self) -> &BlockIndex {
        &self.block_index
    }

    fn shape(&self) -> Shape {
        let version = self.geometry.version();
        Shape {
            inode_len_min: version.inode_len_min(),
            size_word_len: version.block_word_len(),
            run_header_len: version.dir_header_len(),
            entry_len: version.dir_entry_len(),
            index_entry_len: version.dir_index_len(),
            dir_size_extra: version.dir_size_extra(),
            has_numbers: version.has_numbers(),
            is_sorted: version.is_sorted(),
            // Writers of 3.1 create holes; readers of 3.0 that support them accept them there, too.
            has_holes: version.major() == 3,
        }
    }

    fn parse_inode(&self, cursor: &mut Cursor<'_>) -> Result<RawInode> {
        self.inode_at(cursor)
    }

    fn plain_inode(&self, id: InodeId, raw: &RawInode) -> Result<Inode> {
        self.frame_inode(id, raw)
    }

    fn run_header(&self, cursor: &mut Cursor<'_>) -> Result<RunHeader> {
        let (count, start_block, inode_number) = if self.geometry.version().has_numbers() {
            let mut fields = cursor.fields::<9>()?;
            (fields.word(8), fields.word(32), fields.word(32))
        } else {
            let mut fields = cursor.fields::<4>()?;
            (fields.word(8), fields.word(24), 0)
        };
        Ok(RunHeader { count: count.plus(1), start_block, inode_number })
    }

    fn entry_head(&self, cursor: &mut Cursor<'_>) -> Result<EntryHead> {
        let (offset, inode_type, size, inode_number) = if self.geometry.version().has_numbers() {
            let mut fields = cursor.fields::<5>()?;
            (fields.half(13), fields.half(3), fields.word(8), fields.half(16) as i16)
        } else {
            let mut fields = cursor.fields::<3>()?;
            (fields.half(13), fields.half(3), fields.word(8), 0)
        };
        Ok(EntryHead { offset, inode_number, inode_type, name_len: size.plus(1) })
    }

    fn index_head(&self, cursor: &mut Cursor<'_>) -> Result<IndexHead> {
        let (index, start_block, size) = if self.geometry.version().has_numbers() {
            let mut fields = cursor.fields::<9>()?;
            (fields.word(32), fields.word(32), fields.word(8))
        } else {
            let mut fields = cursor.fields::<8>()?;
            (fields.word(27), fields.word(29), fields.word(8))
        };
        Ok(IndexHead { index, start_block, name_len: size.plus(1) })
    }

    fn size_word(&self, cursor: &mut Cursor<'_>) -> Result<u32> {
        match self.geometry.version().block_word_len() {
            2 => Ok(widened(cursor.fields::<2>()?.half(16))),
            _ => Ok(cursor.fields::<4>()?.word(32)),
        }
    }

    fn stored_data(&self, word: u32, place: Place) -> Result<StoredData> {
        let (stored, max) = (StoredData::of_word(word), self.geometry.layout.block_len);
        if stored.len == 0 || stored.len > max {
            return Err(Corruption::SizeWord { place, found: word, max }.into());
        }
        Ok(stored)
    }

    fn fragment_row(&self, index: u32) -> Result<Option<FragmentRow>> {
        let Some(table) = &self.geometry.layout.fragments else { return Ok(None) };
        Ok(match self.geometry.version().fragment_len() {
            8 => table.row(&self.metadata, index)?.map(|row| self.short_row(row)),
            _ => table.row(&self.metadata, index)?.map(|row| self.long_row(row)),
        })
    }

    fn each_fragment_row(&self, mut visit: impl FnMut(u32, FragmentRow) -> Result<()>) -> Result<()> {
        let Some(table) = &self.geometry.layout.fragments else { return Ok(()) };
        match self.geometry.version().fragment_len() {
            8 => table.each_row(&self.metadata, |index, row| visit(index, self.short_row(row))),
            _ => table.each_row(&self.metadata, |index, row| visit(index, self.long_row(row))),
        }
    }
}

impl LegacyVolume {
    fn short_row(&self, row: [u8; 8]) -> FragmentRow {
        let mut fields = Fields::new(row, self.geometry.endian());
        FragmentRow { start_block: fields.take(32), size: fields.word(32) }
    }

    /// Reads a row of version 3, without the unused word at its end.
    fn long_row(&self, row: [u8; 12]) -> FragmentRow {
        let mut fields = Fields::new(row, self.geometry.endian());
        FragmentRow { start_block: fields.take(64), size: fields.word(32) }
    }
}

/// Converts a size word of version 1, in which 0 means 32,768, to one of version 2.
fn widened(word: u16) -> u32 {
    let len = match word & !SQUASHFS_COMPRESSED_BIT {
        0 => u32::from(SQUASHFS_COMPRESSED_BIT),
        len => u32::from(len),
    };
    if word & SQUASHFS_COMPRESSED_BIT == 0 { len } else { len | SQUASHFS_COMPRESSED_BIT_BLOCK }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_version_1_are_read_as_those_of_version_2() {
        assert_eq!(widened(700), 700);
        assert_eq!(widened(0x8000 | 700), 0x100_0000 | 700);
        assert_eq!(widened(0x8000), 0x100_8000);
        assert_eq!(widened(0), 32_768);
    }
}

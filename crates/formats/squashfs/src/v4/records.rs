//! Decoding of the records of 4.0.

use crate::v4::corruption::Corruption;
use crate::v4::disk::*;
use crate::v4::volume::SquashfsVolume;
use crate::{
    BlockIndex, Cursor, EntryHead, FragmentRow, IndexHead, Layout, Metadata, Place, RawInode, Records,
    RunHeader, Shape, StoredData,
};
use packfs_core::{Result, u32_of};
use packfs_format::{Inode, InodeId, units::*};
use std::mem::size_of;
use zerocopy::little_endian::U32;

const SHAPE: Shape = Shape {
    // Base and link count.
    inode_len_min: (size_of::<InodeBase>() + size_of::<IpcInode>()) as u64,
    size_word_len: size_of::<U32>() as u64,
    run_header_len: u32_of(size_of::<DirHeader>() as u64),
    entry_len: u32_of(size_of::<DirEntry>() as u64),
    index_entry_len: u32_of(size_of::<DirIndex>() as u64),
    dir_size_extra: DIR_SIZE_EXTRA,
    has_numbers: true,
    is_sorted: true,
    has_holes: true,
};

impl Records for SquashfsVolume {
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
        SHAPE
    }

    fn parse_inode(&self, cursor: &mut Cursor<'_>) -> Result<RawInode> {
        self.inode_at(cursor)
    }

    fn plain_inode(&self, _id: InodeId, raw: &RawInode) -> Result<Inode> {
        self.frame_inode(raw)
    }

    fn run_header(&self, cursor: &mut Cursor<'_>) -> Result<RunHeader> {
        let raw: DirHeader = cursor.read()?;
        Ok(RunHeader {
            count: end_of(raw.count.get(), 1),
            start_block: raw.start_block.get(),
            inode_number: raw.inode_number.get(),
        })
    }

    fn entry_head(&self, cursor: &mut Cursor<'_>) -> Result<EntryHead> {
        let raw: DirEntry = cursor.read()?;
        Ok(EntryHead {
            offset: raw.offset.get(),
            inode_number: raw.inode_number.get(),
            inode_type: raw.r#type.get(),
            name_len: u32::from(raw.size.get()) + 1,
        })
    }

    fn index_head(&self, cursor: &mut Cursor<'_>) -> Result<IndexHead> {
        let raw: DirIndex = cursor.read()?;
        Ok(IndexHead {
            index: raw.index.get(),
            start_block: raw.start_block.get(),
            name_len: end_of(raw.size.get(), 1),
        })
    }

    fn size_word(&self, cursor: &mut Cursor<'_>) -> Result<u32> {
        Ok(cursor.read::<U32>()?.get())
    }

    fn stored_data(&self, word: u32, place: Place) -> Result<StoredData> {
        let (stored, max) = (StoredData::of_word(word), self.geometry.layout.block_len);
        if stored.len > max {
            return Err(Corruption::SizeWord { place, found: word, max }.into());
        }
        Ok(stored)
    }

    fn fragment_row(&self, index: u32) -> Result<Option<FragmentRow>> {
        let Some(table) = &self.geometry.layout.fragments else { return Ok(None) };
        Ok(table.row(&self.metadata, index)?.map(fragment_row))
    }

    fn each_fragment_row(&self, mut visit: impl FnMut(u32, FragmentRow) -> Result<()>) -> Result<()> {
        let Some(table) = &self.geometry.layout.fragments else { return Ok(()) };
        table.each_row(&self.metadata, |index, row| visit(index, fragment_row(row)))
    }
}

fn fragment_row(raw: FragmentEntry) -> FragmentRow {
    FragmentRow { start_block: raw.start_block.get(), size: raw.size.get() }
}

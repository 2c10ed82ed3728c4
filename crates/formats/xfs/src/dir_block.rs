//! Entries of a directory in an inode or in a block.

use crate::block::Block;
use crate::corruption::{Corruption, read};
use crate::disk::*;
use crate::inode::{DiskInode, Fork};
use crate::super_block::SuperBlock;
use packfs_core::{FileType, Result, usize_of};
use packfs_format::{structure, units::*};
use std::ops::ControlFlow;
use zerocopy::big_endian::{U16, U32, U64};

/// Tag of free space in a block.
const FREE: u16 = 0xffff;
const LEAF_LEN: usize = size_of::<Dir2LeafEntry>();
const FREE_LEN_MIN: u16 = 8;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RawEntry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) ino: u64,
    pub(crate) file_type: u8,
    /// Directory offset of the entry, and of the next.
    pub(crate) at: u64,
    pub(crate) next: u64,
}

pub(crate) type Visit<'a> = dyn FnMut(RawEntry<'_>) -> ControlFlow<()> + 'a;

/// Returns the type of an entry; `None` if it is not stored or unknown.
pub(crate) fn file_type(number: u8) -> Option<FileType> {
    Some(match number {
        1 => FileType::File,
        2 => FileType::Directory,
        3 | 8 => FileType::CharDevice,
        4 => FileType::BlockDevice,
        5 => FileType::Fifo,
        6 => FileType::Socket,
        7 => FileType::Symlink,
        _ => return None,
    })
}

pub(crate) struct ShortForm<'a> {
    bytes: &'a [u8],
    ino: u64,
    has_types: bool,
    number_len: usize,
}

impl<'a> ShortForm<'a> {
    pub(crate) fn new(inode: &'a DiskInode, super_block: &SuperBlock) -> Self {
        let bytes = inode.fork(Fork::Data);
        let len = usize::try_from(inode.size).unwrap_or(usize::MAX).min(bytes.len());
        let bytes = bytes.within(..len);
        let number_len = if bytes.get(1).is_some_and(|long| *long > 0) { 8 } else { 4 };
        ShortForm { bytes, ino: inode.ino, has_types: super_block.has_ftype(), number_len }
    }

    fn number(&self, at: usize) -> Option<u64> {
        Some(match self.number_len {
            8 => structure::<U64>(self.bytes, at)?.get() & (u64::MAX >> 8),
            _ => structure::<U32>(self.bytes, at)?.get().into(),
        })
    }

    /// Returns the entry at a byte, without its offsets, and its end; `None` if it is cut off.
    fn entry(&self, at: usize) -> Option<(RawEntry<'a>, usize)> {
        let name_at = at.checked_add(3)?;
        let name = part(self.bytes, name_at, (*self.bytes.get(at)?).into())?;
        let type_at = name_at.checked_add(name.len())?;
        let file_type = if self.has_types { *self.bytes.get(type_at)? } else { 0 };
        let ino_at = type_at.checked_add(self.has_types.into())?;
        let entry = RawEntry { name, ino: self.number(ino_at)?, file_type, at: 0, next: 0 };
        Some((entry, ino_at.checked_add(self.number_len)?))
    }

    /// Calls `visit` for the entries from index `from` on, which starts at 1; indexes replace
    /// offsets.
    pub(crate) fn each(&self, from: u64, visit: &mut Visit<'_>) -> Result<()> {
        let mut at = 2_usize.plus(self.number_len);
        let fault = |at: usize| Corruption::ShortForm { ino: self.ino, what: "directory", at: at as u64 };
        let Some([count, ..]) = part(self.bytes, 0, at) else {
            return Err(fault(0).into());
        };
        for index in 1..=u64::from(*count) {
            let (entry, end) = self.entry(at).ok_or(fault(at))?;
            let entry = RawEntry { at: index, next: index.plus(1), ..entry };
            if index >= from && visit(entry).is_break() {
                break;
            }
            at = end;
        }
        Ok(())
    }
}

pub(crate) struct DataBlock<'a> {
    block: &'a Block,
    offset: u64,
    has_types: bool,
    start: usize,
    end: usize,
}

impl<'a> DataBlock<'a> {
    pub(crate) fn new(block: &'a Block, offset: u64, super_block: &SuperBlock) -> Result<Self> {
        let bytes = &block.bytes;
        let start = if super_block.is_v5() { size_of::<Dir3DataHdr>() } else { size_of::<Dir2DataHdr>() };
        let end = if has_hash_table(bytes) { hash_table(block, start)?.0 } else { bytes.len() };
        Ok(DataBlock { block, offset, has_types: super_block.has_ftype(), start, end })
    }

    /// Calls `visit` for the entries whose directory offset is at least `from`, including `.` and
    /// `..`.
    pub(crate) fn each(&self, from: u64, visit: &mut Visit<'_>) -> Result<()> {
        let (bytes, place) = (&self.block.bytes, self.block.place);
        let mut at = self.start;
        while at < self.end {
            let here = at as u64;
            let unused: Dir2DataUnused = read(bytes, at, place)?;
            if unused.freetag.get() == FREE {
                let found = unused.length.get();
                let next = at.plus(found.into());
                if found < FREE_LEN_MIN || !found.is_multiple_of(8) || next > self.end {
                    return Err(Corruption::DirFree { place, at: here, found }.into());
                }
                at = next;
                continue;
            }
            let head: Dir2DataEntry = read(bytes, at, place)?;
            let name_at = at.plus(size_of::<Dir2DataEntry>());
            let type_at = name_at.plus(head.namelen.into());
            let len = type_at.minus(at).plus(2).plus(self.has_types.into());
            let next = at.plus(len.next_multiple_of(8));
            let name = part(bytes, name_at, head.namelen.into()).filter(|_| next <= self.end);
            let name = name.ok_or(Corruption::DirEntry { place, at: here })?;
            let found = read::<U16>(bytes, next.minus(2), place)?.get();
            if usize::from(found) != at {
                return Err(Corruption::DirTag { place, at: here, found }.into());
            }
            let file_type = if self.has_types { read(bytes, type_at, place)? } else { 0 };
            let entry_at = self.offset.plus(here);
            let next_at = self.offset.plus(next as u64);
            let entry = RawEntry { name, ino: head.inumber.get(), file_type, at: entry_at, next: next_at };
            if entry_at >= from && visit(entry).is_break() {
                return Ok(());
            }
            at = next;
        }
        Ok(())
    }
}

/// True for a directory of one block, which also contains the hash table.
pub(crate) fn has_hash_table(bytes: &[u8]) -> bool {
    let magic = structure(bytes, 0).map(U32::get);
    matches!(magic, Some(XFS_DIR3_BLOCK_MAGIC | XFS_DIR2_BLOCK_MAGIC))
}

/// Returns the offset of the hash table at the end of such a block, at `start` or later, and its
/// number of entries.
pub(crate) fn hash_table(block: &Block, start: usize) -> Result<(usize, usize)> {
    let place = block.place;
    let tail_at = block.bytes.len().minus(size_of::<Dir2BlockTail>());
    let count = read::<Dir2BlockTail>(&block.bytes, tail_at, place)?.count.get();
    let count = usize_of(count.into());
    let max = tail_at.minus(start) / LEAF_LEN;
    match tail_at.checked_sub(count.times(LEAF_LEN)).filter(|at| *at >= start) {
        Some(at) => Ok((at, count)),
        None => Err(Corruption::DirTail { place, found: count as u64, max: max as u64 }.into()),
    }
}

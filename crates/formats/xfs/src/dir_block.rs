//! Entries of a directory: those in an inode, and those of a block.

use crate::block::Block;
use crate::corruption::Corruption;
use crate::disk::{be16, be32, be64, byte, part};
use crate::inode::{DiskInode, Fork};
use crate::super_block::SuperBlock;
use packfs_core::{FileType, Result};
use std::ops::ControlFlow;

/// Marks free space in a block.
const FREE: u16 = 0xffff;
/// Bytes of an entry of the hash table, and of the tail behind it.
const LEAF_LEN: usize = 8;
/// Bytes of the shortest free space.
const FREE_LEN_MIN: u16 = 8;

/// Entry as it is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawEntry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) ino: u64,
    /// Number of the type; 0 where there is none.
    pub(crate) file_type: u8,
    /// Place of the entry within the directory, and that of the next.
    pub(crate) at: u64,
    pub(crate) next: u64,
}

/// Takes entries.
pub(crate) type Visit<'a> = dyn FnMut(RawEntry<'_>) -> ControlFlow<()> + 'a;

/// Returns the type that an entry's number means; `None` for none, and for an unknown one.
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

/// Directory in an inode.
pub(crate) struct ShortForm<'a> {
    bytes: &'a [u8],
    ino: u64,
    has_types: bool,
    /// Bytes of an inode number.
    number_len: usize,
}

impl<'a> ShortForm<'a> {
    pub(crate) fn new(inode: &'a DiskInode, super_block: &SuperBlock) -> Self {
        let bytes = inode.fork(Fork::Data);
        let len = usize::try_from(inode.size).unwrap_or(usize::MAX).min(bytes.len());
        let bytes = bytes.get(..len).unwrap_or_default();
        let number_len = if byte(bytes, 1) > 0 { 8 } else { 4 };
        ShortForm { bytes, ino: inode.ino, has_types: super_block.has_ftype(), number_len }
    }

    fn number(&self, at: usize) -> u64 {
        match self.number_len {
            8 => be64(self.bytes, at) & (u64::MAX >> 8),
            _ => be32(self.bytes, at).into(),
        }
    }

    /// Calls `visit` for the entries from index `from` on, counted from 1: places are indexes.
    pub(crate) fn each(&self, from: u64, visit: &mut Visit<'_>) -> Result<()> {
        let mut at = 2_usize.saturating_add(self.number_len);
        let fault = |at: usize| Corruption::ShortForm { ino: self.ino, what: "directory", at: at as u64 };
        if self.bytes.len() < at {
            return Err(fault(0).into());
        }
        for index in 1..=u64::from(byte(self.bytes, 0)) {
            let name_len = usize::from(byte(self.bytes, at));
            let name_at = at.saturating_add(3);
            let type_at = name_at.saturating_add(name_len);
            let ino_at = type_at.saturating_add(self.has_types.into());
            let end = ino_at.saturating_add(self.number_len);
            let name = part(self.bytes, name_at, name_len).filter(|_| end <= self.bytes.len());
            let name = name.ok_or(fault(at))?;
            let file_type = if self.has_types { byte(self.bytes, type_at) } else { 0 };
            let next = index.saturating_add(1);
            let entry = RawEntry { name, ino: self.number(ino_at), file_type, at: index, next };
            if index >= from && visit(entry).is_break() {
                break;
            }
            at = end;
        }
        Ok(())
    }
}

/// Block of entries.
pub(crate) struct DataBlock<'a> {
    block: &'a Block,
    /// Place of the block within the directory.
    offset: u64,
    has_types: bool,
    start: usize,
    end: usize,
}

impl<'a> DataBlock<'a> {
    /// Looks at the block that is at `offset` of its directory.
    pub(crate) fn new(block: &'a Block, offset: u64, super_block: &SuperBlock) -> Result<Self> {
        let bytes = &block.bytes;
        let start = if super_block.is_v5() { 64 } else { 16 };
        let mut end = bytes.len();
        if has_hash_table(bytes) {
            let count = be32(bytes, bytes.len().saturating_sub(LEAF_LEN));
            let max = bytes.len().saturating_sub(start).saturating_sub(LEAF_LEN) / LEAF_LEN;
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            if count > max {
                return Err(
                    Corruption::DirTail { place: block.place, found: count as u64, max: max as u64 }.into()
                );
            }
            end = end.saturating_sub(count.saturating_add(1).saturating_mul(LEAF_LEN));
        }
        Ok(DataBlock { block, offset, has_types: super_block.has_ftype(), start, end })
    }

    /// Calls `visit` for the entries whose place in the directory is at least `from`, `.` and `..`
    /// among them.
    pub(crate) fn each(&self, from: u64, visit: &mut Visit<'_>) -> Result<()> {
        let (bytes, place) = (&self.block.bytes, self.block.place);
        let mut at = self.start;
        while at < self.end {
            let here = at as u64;
            if be16(bytes, at) == FREE {
                let found = be16(bytes, at.saturating_add(2));
                let next = at.saturating_add(found.into());
                if found < FREE_LEN_MIN || !found.is_multiple_of(8) || next > self.end {
                    return Err(Corruption::DirFree { place, at: here, found }.into());
                }
                at = next;
                continue;
            }
            let name_len = usize::from(byte(bytes, at.saturating_add(8)));
            let type_at = at.saturating_add(9).saturating_add(name_len);
            let len = type_at.saturating_sub(at).saturating_add(2).saturating_add(self.has_types.into());
            let next = at.saturating_add(len.next_multiple_of(8));
            let name = part(bytes, at.saturating_add(9), name_len).filter(|_| next <= self.end);
            let name = name.ok_or(Corruption::DirEntry { place, at: here })?;
            let found = be16(bytes, next.saturating_sub(2));
            if usize::from(found) != at {
                return Err(Corruption::DirTag { place, at: here, found }.into());
            }
            let file_type = if self.has_types { byte(bytes, type_at) } else { 0 };
            let entry_at = self.offset.saturating_add(here);
            let next_at = self.offset.saturating_add(next as u64);
            let entry = RawEntry { name, ino: be64(bytes, at), file_type, at: entry_at, next: next_at };
            if entry_at >= from && visit(entry).is_break() {
                return Ok(());
            }
            at = next;
        }
        Ok(())
    }
}

/// Returns true for the only block of a directory, which holds its hash table, too.
pub(crate) fn has_hash_table(bytes: &[u8]) -> bool {
    matches!(be32(bytes, 0), 0x5844_4233 | 0x5844_3242)
}

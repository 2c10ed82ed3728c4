//! Directories: blocks of entries, walked in the order in which they are stored.
//!
//! Blocks of a hash tree look like unused entries, so that each name is met once. Invariant: an
//! entry ends after it starts, so every listing ends.

use crate::bytes::{field, le16, le32, u8_at};
use crate::corruption::Corruption;
use crate::disk::entry_type;
use crate::features::{DIR_INDEX, DIRDATA, FILETYPE};
use crate::inode::{BLOCK_FIELD_AT, ENCRYPTED, INDEXED, INLINE, RawInode};
use crate::reader::Reader;
use crate::run::Run;
use crate::sums::Mismatch;
use packfs_core::{Error, FileType, Name, Result};
use packfs_format::{DirCursor, DirEntry, InodeId, crc32c};
use std::ops::ControlFlow;

/// Bytes of an entry before its name.
const HEAD_LEN: usize = 8;
/// Bytes of the shortest entry.
const ENTRY_LEN_MIN: usize = 12;
/// Bytes at the end of a block that hold its checksum.
const TAIL_LEN: usize = 12;
/// First word of them behind the inode: length 12, no name, type 0xde.
const TAIL_WORD: u32 = 0xde00_000c;
/// Bytes of an inline directory before its first entry: the parent.
const PARENT_LEN: usize = 4;
/// Bytes of a block whose entries may be too long for their field.
const LONG_BLOCK_LEN: usize = 1 << 16;

/// An entry as it is stored, `.` and `..` included; of inode 0 if it is not used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawEntry<'a> {
    pub(crate) inode: u32,
    pub(crate) name: &'a [u8],
    pub(crate) file_type: Option<FileType>,
    /// Offset in the image.
    pub(crate) place: u64,
    /// Offset in the directory.
    pub(crate) at: u64,
    /// Offset of the next one in the directory.
    pub(crate) next: u64,
    /// Entries before it in its block.
    pub(crate) index: usize,
}

/// Bytes that entries fill.
struct Entries<'a> {
    reader: &'a Reader,
    dir: u32,
    bytes: &'a [u8],
    /// Offset of the bytes in the image.
    place: u64,
    /// Offset of the bytes in the directory.
    start: u64,
    at: usize,
    index: usize,
}

impl<'a> Entries<'a> {
    fn entry(&self) -> Result<RawEntry<'a>, &'static str> {
        let bytes = self.bytes.get(self.at..).unwrap_or_default();
        let len = match le16(bytes, 4) {
            0 | 0xffff if self.bytes.len() == LONG_BLOCK_LEN => LONG_BLOCK_LEN,
            len => usize::from(len),
        };
        if len < ENTRY_LEN_MIN || len % 4 != 0 || len > bytes.len() {
            return Err("its length is none, or reaches beyond its block");
        }
        let features = self.reader.super_block.features;
        let file_type = match features.needs(FILETYPE) {
            true => u8_at(bytes, 7),
            false => 0,
        };
        // The next byte was a part of it once; Linux ignores it.
        let name_end = usize::from(u8_at(bytes, 6)).saturating_add(HEAD_LEN);
        let inode = le32(bytes, 0);
        let name = bytes.get(HEAD_LEN..name_end).filter(|_| name_end <= len).unwrap_or_default();
        if name.is_empty() && inode != 0 {
            return Err("its name is empty, or reaches beyond the entry");
        }
        let file_type = if features.needs(DIRDATA) { file_type & 0xf } else { file_type };
        let at = self.start.saturating_add(self.at as u64);
        Ok(RawEntry {
            inode,
            name,
            file_type: entry_type(file_type),
            place: self.place.saturating_add(self.at as u64),
            at,
            next: at.saturating_add(len as u64),
            index: self.index,
        })
    }

    /// Calls `visit` for each entry; those behind a damaged one are lost.
    fn each(mut self, visit: &mut dyn FnMut(RawEntry<'_>) -> ControlFlow<()>) -> Result<ControlFlow<()>> {
        while self.at < self.bytes.len() {
            let entry = self.entry().map_err(|fault| {
                let at = self.place.saturating_add(self.at as u64);
                Error::from(Corruption::DirEntry { inode: self.dir, at, fault })
            })?;
            if visit(entry).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            self.at = packfs_core::usize_of(entry.next.saturating_sub(self.start));
            self.index = self.index.saturating_add(1);
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The first of several errors.
#[derive(Default)]
struct FirstError(Option<Error>);

impl FirstError {
    fn keep(&mut self, error: impl Into<Error>) {
        self.0.get_or_insert_with(|| error.into());
    }

    fn end(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

impl Reader {
    /// Reads the inode of a directory.
    pub(crate) fn dir(&self, number: u64) -> Result<RawInode> {
        let raw = self.named_inode(number)?;
        match raw.is_dir() {
            true => Ok(raw),
            false => Err(Corruption::Kind { inode: raw.number, wanted: "directory" }.into()),
        }
    }

    /// Calls `visit` for each entry of the blocks of a directory that hold offsets after `from`. A
    /// damaged block is passed over, and told of at the end.
    pub(crate) fn raw_entries(
        &self,
        dir: &RawInode,
        from: u64,
        visit: &mut dyn FnMut(RawEntry<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut damage = FirstError::default();
        match self.entries_and_damage(dir, from, visit, &mut |error| damage.keep(error)) {
            ControlFlow::Break(()) => Ok(()),
            ControlFlow::Continue(()) => damage.end(),
        }
    }

    /// Calls `visit` as [`Reader::raw_entries`] does, and `damaged` for each error.
    pub(crate) fn entries_and_damage(
        &self,
        dir: &RawInode,
        from: u64,
        visit: &mut dyn FnMut(RawEntry<'_>) -> ControlFlow<()>,
        damaged: &mut dyn FnMut(Error),
    ) -> ControlFlow<()> {
        if dir.has(INLINE) {
            return self.inline_entries(dir, visit).unwrap_or_else(|error| {
                damaged(error);
                ControlFlow::Continue(())
            });
        }
        let block_len = self.super_block.block_len;
        let first = from.checked_div(block_len).unwrap_or(0);
        let end = dir.len(&self.super_block).checked_div(block_len).unwrap_or(0);
        let mut flow = ControlFlow::Continue(());
        let walked = self.runs(dir, first..end, &mut |run| {
            for (number, block) in blocks_within(run, first, end) {
                let listed = self.dir_block(dir, number, block).and_then(|bytes| {
                    let (place, start) = (self.super_block.offset(block), number.saturating_mul(block_len));
                    let entries = self.entries(dir, &bytes, place, start);
                    entries.each(visit)
                });
                match listed {
                    Ok(found) => flow = found,
                    Err(error) => damaged(error),
                }
                if flow.is_break() {
                    break;
                }
            }
            flow
        });
        if let Err(error) = walked {
            damaged(error);
        }
        flow
    }

    fn entries<'a>(&'a self, dir: &RawInode, bytes: &'a [u8], place: u64, start: u64) -> Entries<'a> {
        Entries { reader: self, dir: dir.number, bytes, place, start, at: 0, index: 0 }
    }

    /// Walks entries in the inode: behind the number of the parent, and in an attribute.
    fn inline_entries(
        &self,
        dir: &RawInode,
        visit: &mut dyn FnMut(RawEntry<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let (field_bytes, len) = (dir.block_field(), dir.len(&self.super_block));
        let head = field_bytes.get(PARENT_LEN..).unwrap_or_default();
        let at = BLOCK_FIELD_AT.saturating_add(PARENT_LEN);
        let entries = self.entries(dir, head, dir.offset.saturating_add(at as u64), PARENT_LEN as u64);
        if entries.each(visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let Some(range) = self.inline_value(dir)? else { return Ok(ControlFlow::Continue(())) };
        let place = dir.offset.saturating_add(range.start as u64);
        let rest = dir.bytes().get(range).unwrap_or_default();
        let start = field_bytes.len() as u64;
        let (found, max) = (len, start.saturating_add(rest.len() as u64));
        if found > max {
            return Err(Corruption::Inline { inode: dir.number, found, max }.into());
        }
        self.entries(dir, rest, place, start).each(visit)
    }

    /// Reads a block of a directory, verified.
    pub(crate) fn dir_block(&self, dir: &RawInode, number: u64, block: u64) -> Result<Box<[u8]>> {
        let bytes = self.block(block)?;
        if !self.sums.all {
            return Ok(bytes);
        }
        let inode = dir.number;
        let is_indexed = dir.has(INDEXED) && self.super_block.features.has(DIR_INDEX);
        let fills = usize::from(le16(&bytes, 4));
        let is_node = le32(&bytes, 0) == 0
            && (fills == bytes.len() || bytes.len() == LONG_BLOCK_LEN && matches!(fills, 0 | 0xffff));
        let seed = self.sums.inode_seed(inode, dir.generation());
        let sum = match is_indexed && (number == 0 || is_node) {
            true => index_sum(seed, &bytes, number == 0),
            false => leaf_sum(seed, &bytes),
        };
        let (found, wanted) = sum.ok_or(Corruption::DirTail { inode, block })?;
        match Mismatch::of(found, wanted) {
            Some(Mismatch { found, wanted }) => {
                Err(Corruption::DirSum { inode, block, found, wanted }.into())
            }
            None => Ok(bytes),
        }
    }

    /// Implements [`packfs_format::Volume::read_dir`]. A cursor is the offset of the next entry.
    pub(crate) fn each_entry(
        &self,
        dir: &RawInode,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        if dir.has(ENCRYPTED) {
            return Err(encrypted(dir.number, "directory, its names and files"));
        }
        let mut damage = FirstError::default();
        let mut is_over = false;
        let patch = self.patches.dir(dir.number);
        let walked = match patch.is_some_and(|patch| patch.is_new) {
            true => Ok(()),
            false => self.raw_entries(dir, from.0, &mut |entry| {
                let is_removed = patch.is_some_and(|patch| patch.removed.contains(entry.name));
                if entry.at < from.0 || entry.inode == 0 || is_dots(dir, &entry) || is_removed {
                    return ControlFlow::Continue(());
                }
                if let Err(fault) = Name::new(entry.name) {
                    damage.keep(Corruption::DirEntry { inode: dir.number, at: entry.place, fault });
                    return ControlFlow::Continue(());
                }
                let found = self.entry_of(entry.name, entry.inode, entry.file_type);
                is_over = visit(found, DirCursor(entry.next)).is_break();
                if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }),
        };
        let end = dir.len(&self.super_block).saturating_add(u64::from(u16::MAX));
        for (at, (name, inode)) in (end..).zip(patch.into_iter().flat_map(|patch| &patch.added)) {
            if is_over || at < from.0 {
                continue;
            }
            let found = self.entry_of(name, *inode, None);
            is_over = visit(found, DirCursor(at.saturating_add(1))).is_break();
        }
        if is_over {
            return Ok(());
        }
        walked?;
        damage.end()
    }

    /// Makes an entry; the type comes from the inode if the entry has none.
    fn entry_of(&self, name: &[u8], inode: u32, file_type: Option<FileType>) -> DirEntry {
        let id = u64::from(inode);
        let file_type = file_type.or_else(|| self.raw_inode(id).ok().and_then(|raw| raw.file_type()));
        DirEntry { name: name.to_vec(), id: InodeId(id), file_type: file_type.unwrap_or(FileType::File) }
    }
}

/// Returns true for `.` and `..` where they have to stand: anywhere else, a damaged name may hide a
/// file.
fn is_dots(dir: &RawInode, entry: &RawEntry<'_>) -> bool {
    let is_start = entry.at <= u64::from(u8::MAX) && !dir.has(INLINE);
    match entry.index {
        0 => is_start && entry.at == 0 && entry.name == b".",
        1 => is_start && entry.name == b"..",
        _ => false,
    }
}

/// Returns the blocks of a run that lie within a range of a directory, a link, or an attribute:
/// their numbers there and on disk. Linux reads unwritten ones, too, unlike those of files.
pub(crate) fn blocks_within(run: Run, first: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    let start = run.first.max(first);
    let end = run.first.saturating_add(run.count).min(end);
    let count = end.saturating_sub(start);
    let block = run.block.saturating_add(start.saturating_sub(run.first));
    (0..count).map(move |index| (start.saturating_add(index), block.saturating_add(index)))
}

/// Refuses an encrypted file.
pub(crate) fn encrypted(inode: u32, what: &str) -> Error {
    let error = Error::unsupported("ext4 image", format_args!("inode {inode}: encrypted {what} need a key"));
    error.hint("mount the image, unlock it with fscrypt, and pack the mount point")
}

/// Returns the stored and the computed sum of a block of entries.
fn leaf_sum(seed: u32, bytes: &[u8]) -> Option<(u32, u32)> {
    let (entries, tail) = bytes.split_at_checked(bytes.len().checked_sub(TAIL_LEN)?)?;
    let is_tail = le32(tail, 0) == 0 && le32(tail, 4) == TAIL_WORD;
    is_tail.then(|| (le32(tail, 8), crc32c(seed, entries)))
}

/// Returns the stored and the computed sum of a block of the hash tree.
fn index_sum(seed: u32, bytes: &[u8], is_root: bool) -> Option<(u32, u32)> {
    let counts_at = if is_root { 0x20 } else { 8 };
    let [limit, count] = [0, 2].map(|at| usize::from(le16(bytes, usize::saturating_add(counts_at, at))));
    let end = |rows: usize| rows.saturating_mul(8).saturating_add(counts_at);
    let tail = bytes.get(end(limit)..end(limit.saturating_add(1)))?;
    if count > limit {
        return None;
    }
    let sum = crc32c(crc32c(seed, field(bytes, 0, end(count))), field(tail, 0, 4));
    Some((le32(tail, 4), crc32c(sum, &[0; 4])))
}

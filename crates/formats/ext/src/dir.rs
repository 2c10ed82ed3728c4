//! Directories: blocks of entries, visited in stored order.
//!
//! Blocks of a hash tree look like unused entries, so each name occurs once. Invariant: an entry
//! ends after its start, so every listing ends.

use crate::corruption::Corruption;
use crate::disk::{DirEntry2, DirEntryTail, DxCountlimit, DxEntry, DxRootInfo, DxTail};
use crate::features::{DIR_INDEX, DIRDATA, FILETYPE};
use crate::inode::{BLOCK_FIELD_AT, ENCRYPTED, INDEXED, INLINE, RawInode};
use crate::reader::Reader;
use crate::run::Run;
use crate::sums::Mismatch;
use crate::super_block::entry_type;
use packfs_core::{Error, FileType, Name, Result};
use packfs_format::{DirCursor, DirEntry, InodeId, crc32c, structure, units::*};
use std::ops::ControlFlow;
use zerocopy::IntoBytes;

const HEAD_LEN: usize = size_of::<DirEntry2>();
/// Length of a hash tree's root before its rows: two entries of 12 bytes, and a description.
const ROOT_LEN: usize = 24 + size_of::<DxRootInfo>();
const ENTRY_LEN_MIN: usize = 12;
const TAIL_LEN: usize = size_of::<DirEntryTail>();
/// File type of the checksum at the end of a block, which has the form of an unused entry.
const TAIL_TYPE: u8 = 0xde;
/// Length of the parent's number at the start of an inline directory.
const PARENT_LEN: usize = 4;
/// Block length at which `rec_len` may overflow, so that special values are used.
const LONG_BLOCK_LEN: usize = 1 << 16;

/// A stored entry, including `.` and `..`; its inode is 0 if it is not used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawEntry<'a> {
    pub(crate) inode: u32,
    pub(crate) name: &'a [u8],
    pub(crate) file_type: Option<FileType>,
    /// Offset in the image.
    pub(crate) place: u64,
    pub(crate) at: u64,
    pub(crate) next: u64,
    /// Number of entries before it in its block.
    pub(crate) index: usize,
}

struct Entries<'a> {
    reader: &'a Reader,
    dir: u32,
    bytes: &'a [u8],
    /// Offset of the bytes in the image.
    place: u64,
    start: u64,
    at: usize,
    index: usize,
}

impl<'a> Entries<'a> {
    fn entry(&self) -> Result<RawEntry<'a>, &'static str> {
        let bytes = self.bytes.within(self.at..);
        let head: DirEntry2 = structure(bytes, 0).ok_or("its length is invalid, or exceeds its block")?;
        let len = match head.rec_len.get() {
            0 | 0xffff if self.bytes.len() == LONG_BLOCK_LEN => LONG_BLOCK_LEN,
            len => usize::from(len),
        };
        if len < ENTRY_LEN_MIN || len % 4 != 0 || len > bytes.len() {
            return Err("its length is invalid, or exceeds its block");
        }
        let features = self.reader.super_block.features;
        let file_type = if features.needs(FILETYPE) { head.file_type } else { 0 };
        // `file_type` once was the high byte of the name length; Linux ignores it.
        let name_end = usize::from(head.name_len).plus(HEAD_LEN);
        let inode = head.inode.get();
        let name = bytes.get(HEAD_LEN..name_end).filter(|_| name_end <= len).unwrap_or_default();
        if name.is_empty() && inode != 0 {
            return Err("its name is empty, or reaches beyond the entry");
        }
        let file_type = if features.needs(DIRDATA) { file_type & 0xf } else { file_type };
        let at = self.start.plus(self.at as u64);
        Ok(RawEntry {
            inode,
            name,
            file_type: entry_type(file_type),
            place: self.place.plus(self.at as u64),
            at,
            next: at.plus(len as u64),
            index: self.index,
        })
    }

    /// Calls `visit` for each entry; entries after a damaged one are lost.
    fn each(mut self, visit: &mut dyn FnMut(RawEntry<'_>) -> ControlFlow<()>) -> Result<ControlFlow<()>> {
        while self.at < self.bytes.len() {
            let entry = self.entry().map_err(|fault| {
                let at = self.place.plus(self.at as u64);
                Error::from(Corruption::DirEntry { inode: self.dir, at, fault })
            })?;
            if visit(entry).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            self.at = packfs_core::usize_of(entry.next.minus(self.start));
            self.index = self.index.plus(1);
        }
        Ok(ControlFlow::Continue(()))
    }
}

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
    pub(crate) fn dir(&self, number: u64) -> Result<RawInode> {
        let raw = self.named_inode(number)?;
        if raw.is_dir() {
            Ok(raw)
        } else {
            Err(Corruption::Kind { inode: raw.number, wanted: "directory" }.into())
        }
    }

    /// Calls `visit` for each entry in blocks that end after offset `from`. Damaged blocks are
    /// skipped, and the first error is returned at the end.
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

    /// Like [`Reader::raw_entries`], and calls `damaged` for each error.
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
        let first = from.quotient(block_len);
        let end = dir.len(&self.super_block).quotient(block_len);
        let mut flow = ControlFlow::Continue(());
        let walked = self.runs(dir, first..end, &mut |run| {
            for (number, block) in blocks_within(run, first, end) {
                let listed = self.dir_block(dir, number, block).and_then(|bytes| {
                    let place = self.super_block.offset(block);
                    let start = number.times(block_len);
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

    /// Visits entries in the inode: after the parent's number, and in an attribute.
    fn inline_entries(
        &self,
        dir: &RawInode,
        visit: &mut dyn FnMut(RawEntry<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let (field_bytes, len) = (dir.block_field(), dir.len(&self.super_block));
        let head = field_bytes.within(PARENT_LEN..);
        let at = BLOCK_FIELD_AT.plus(PARENT_LEN);
        let entries = self.entries(dir, head, dir.offset.plus(at as u64), PARENT_LEN as u64);
        if entries.each(visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let Some(range) = self.inline_value(dir)? else { return Ok(ControlFlow::Continue(())) };
        let place = dir.offset.plus(range.start as u64);
        let rest = dir.bytes().within(range);
        let start = field_bytes.len() as u64;
        let (found, max) = (len, start.plus(rest.len() as u64));
        if found > max {
            return Err(Corruption::Inline { inode: dir.number, found, max }.into());
        }
        self.entries(dir, rest, place, start).each(visit)
    }

    pub(crate) fn dir_block(&self, dir: &RawInode, number: u64, block: u64) -> Result<Box<[u8]>> {
        let bytes = self.block(block)?;
        if !self.sums.all {
            return Ok(bytes);
        }
        let inode = dir.number;
        let is_indexed = dir.has(INDEXED) && self.super_block.features.has(DIR_INDEX);
        let head: DirEntry2 = structure(&bytes, 0).ok_or(Corruption::DirTail { inode, block })?;
        let fills = usize::from(head.rec_len.get());
        let is_node = head.inode.get() == 0
            && (fills == bytes.len() || bytes.len() == LONG_BLOCK_LEN && matches!(fills, 0 | 0xffff));
        let seed = self.sums.inode_seed(inode, dir.generation());
        let sum = if is_indexed && (number == 0 || is_node) {
            index_sum(seed, &bytes, number == 0)
        } else {
            leaf_sum(seed, &bytes)
        };
        let (found, wanted) = sum.ok_or(Corruption::DirTail { inode, block })?;
        match Mismatch::of(found, wanted) {
            Some(Mismatch { found, wanted }) => {
                Err(Corruption::DirSum { inode, block, found, wanted }.into())
            }
            None => Ok(bytes),
        }
    }

    /// A cursor is the offset of the next entry.
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
        let walked = if patch.is_some_and(|patch| patch.is_new) {
            Ok(())
        } else {
            self.raw_entries(dir, from.0, &mut |entry| {
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
            })
        };
        let end = dir.len(&self.super_block).plus(u64::from(u16::MAX));
        for (at, (name, inode)) in (end..).zip(patch.into_iter().flat_map(|patch| &patch.added)) {
            if is_over || at < from.0 {
                continue;
            }
            let found = self.entry_of(name, *inode, None);
            is_over = visit(found, DirCursor(at.plus(1))).is_break();
        }
        if is_over {
            return Ok(());
        }
        walked?;
        damage.end()
    }

    /// Returns an entry; the type is read from the inode if the entry does not store it.
    fn entry_of(&self, name: &[u8], inode: u32, file_type: Option<FileType>) -> DirEntry {
        let id = u64::from(inode);
        let file_type = file_type.or_else(|| self.raw_inode(id).ok().and_then(|raw| raw.file_type()));
        DirEntry { name: name.to_vec(), id: InodeId(id), file_type: file_type.unwrap_or(FileType::File) }
    }
}

/// True for `.` and `..` at their proper offsets: elsewhere, a damaged name may hide a file.
fn is_dots(dir: &RawInode, entry: &RawEntry<'_>) -> bool {
    let is_start = entry.at <= u64::from(u8::MAX) && !dir.has(INLINE);
    match entry.index {
        0 => is_start && entry.at == 0 && entry.name == b".",
        1 => is_start && entry.name == b"..",
        _ => false,
    }
}

/// Returns the blocks of a run within a range of a directory, a link, or an attribute: their
/// indexes there and their addresses. Linux reads their unwritten blocks, too, unlike those of
/// files.
pub(crate) fn blocks_within(run: Run, first: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    let start = run.first.max(first);
    let end = run.first.plus(run.count).min(end);
    let count = left(end, start);
    let block = run.block.plus(left(start, run.first));
    (0..count).map(move |index| (start.plus(index), block.plus(index)))
}

pub(crate) fn encrypted(inode: u32, what: &str) -> Error {
    let error = Error::unsupported("ext4 image", format_args!("inode {inode}: encrypted {what} need a key"));
    error.hint("mount the image, unlock it with fscrypt, and pack the mount point")
}

/// Returns the stored and the computed checksum of a block of entries.
fn leaf_sum(seed: u32, bytes: &[u8]) -> Option<(u32, u32)> {
    let (entries, tail) = bytes.split_at_checked(bytes.len().checked_sub(TAIL_LEN)?)?;
    let tail: DirEntryTail = structure(tail, 0)?;
    let wanted = DirEntryTail {
        det_rec_len: u16::try_from(TAIL_LEN).ok()?.into(),
        det_reserved_ft: TAIL_TYPE,
        det_checksum: tail.det_checksum,
        ..DirEntryTail::default()
    };
    (tail == wanted).then(|| (tail.det_checksum.get(), crc32c(seed, entries)))
}

/// Returns the stored and the computed checksum of a block of the hash tree.
fn index_sum(seed: u32, bytes: &[u8], is_root: bool) -> Option<(u32, u32)> {
    let counts_at = if is_root { ROOT_LEN } else { HEAD_LEN };
    let limits: DxCountlimit = structure(bytes, counts_at)?;
    let [limit, count] = [limits.limit, limits.count].map(|figure| usize::from(figure.get()));
    let end = |rows: usize| rows.times(size_of::<DxEntry>()).plus(counts_at);
    let tail: DxTail = structure(bytes, end(limit))?;
    let rows = bytes.get(..end(count)).filter(|_| count <= limit)?;
    let tail_without_sum = DxTail { dt_checksum: 0.into(), ..tail };
    Some((tail.dt_checksum.get(), crc32c(crc32c(seed, rows), tail_without_sum.as_bytes())))
}

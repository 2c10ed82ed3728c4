//! Directories: listings read entry by entry, and their indexes.
//!
//! Owns runs, entries, and index entries. Invariant: a listing never yields more than its size
//! permits, every name has passed [`Name::new`], and every step makes progress. The check and the
//! tree builder verify order and duplicates.

use crate::cursor::Cursor;
use crate::fault::MetadataFault;
use crate::inode::raw_inode;
use crate::place::{InodeRef, Place};
use crate::raw::{RawDir, RawInode, RawKind};
use crate::records::{EntryHead, IndexHead, Records, RunHeader, SQUASHFS_DIR_COUNT, SQUASHFS_NAME_LEN};
use crate::stored::SQUASHFS_METADATA_SIZE;
use crate::types::type_of_number;
use packfs_core::{Error, FileType, Name, Result, u32_of};
use packfs_format::{DirCursor, InodeId, units::*};
use std::ops::ControlFlow;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RawEntry {
    pub(crate) id: InodeId,
    pub(crate) file_type: FileType,
    /// Inode number in the entry, since 3.0.
    pub(crate) number: i64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Offset of the header in the listing.
    pub(crate) at: u32,
    pub(crate) count: u32,
    pub(crate) done: u32,
    /// Metadata block of the inodes, relative to the inode table.
    pub(crate) start_block: u32,
    inode_number: u32,
    pub(crate) place: Place,
}

impl Run {
    /// State before the first header.
    const NONE: Run = Run {
        at: 0,
        count: 0,
        done: 0,
        start_block: 0,
        inode_number: 0,
        place: Place { what: "directory header", at: 0, within: None },
    };
}

pub(crate) struct Listing<'a, R> {
    records: &'a R,
    cursor: Option<Cursor<'a>>,
    pub(crate) len: u32,
    pub(crate) at: u32,
    pub(crate) run: Run,
    pub(crate) name: Vec<u8>,
    /// Error of the first invalid name.
    misnamed: Option<Error>,
}

impl<R: Records> Listing<'_, R> {
    fn cursor_after(&self) -> DirCursor {
        if self.run.done == self.run.count {
            return DirCursor(u64::from(self.at) << 32);
        }
        let delta = u64::from(self.at.minus(self.run.at));
        DirCursor(u64::from(self.run.at) << 32 | u64::from(self.run.done) << 20 | delta)
    }

    /// Reads the next entry, and the header before it if a run ends.
    ///
    /// Skips entries with damaged names and returns the first such error at the end, so that other
    /// entries remain readable.
    pub(crate) fn next(&mut self) -> Result<Option<RawEntry>> {
        loop {
            if self.run.done == self.run.count {
                if self.at >= self.len {
                    return self.misnamed.take().map_or(Ok(None), Err);
                }
                self.read_header()?;
                continue;
            }
            if let Some(entry) = self.read_entry()? {
                return Ok(Some(entry));
            }
        }
    }

    fn take(cursor: &Cursor<'_>, at: &mut u32, len: u32, wanted: u32) -> Result<()> {
        let left = len.minus(*at);
        if wanted > left {
            return Err(MetadataFault::RunEnd { place: cursor.place(), left, wanted }.into());
        }
        *at = at.plus(wanted);
        Ok(())
    }

    fn read_header(&mut self) -> Result<()> {
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        cursor.reading("directory header");
        cursor.settle()?;
        let place = cursor.place();
        let at = self.at;
        Self::take(cursor, &mut self.at, self.len, self.records.shape().run_header_len)?;
        let RunHeader { count, start_block, inode_number } = self.records.run_header(cursor)?;
        if count > SQUASHFS_DIR_COUNT {
            return Err(MetadataFault::RunCount { place, found: count }.into());
        }
        self.run = Run { at, count, done: 0, start_block, inode_number, place };
        Ok(())
    }

    fn read_entry(&mut self) -> Result<Option<RawEntry>> {
        // A listing without a cursor is empty, and its run is complete.
        let Some(cursor) = &mut self.cursor else { return Err(Error::failed("empty directory listing")) };
        cursor.reading("directory entry");
        let place = cursor.place();
        Self::take(cursor, &mut self.at, self.len, self.records.shape().entry_len)?;
        let EntryHead { offset, inode_number, inode_type: found, name_len } =
            self.records.entry_head(cursor)?;
        if name_len as usize > Name::LEN_MAX {
            return Err(MetadataFault::EntryName { place, fault: "name longer than 255 bytes" }.into());
        }
        Self::take(cursor, &mut self.at, self.len, name_len)?;
        self.name.resize(name_len as usize, 0);
        cursor.read_bytes(&mut self.name)?;
        self.run.done = self.run.done.plus(1);
        if let Err(fault) = Name::new(&self.name) {
            self.misnamed.get_or_insert_with(|| MetadataFault::EntryName { place, fault }.into());
            return Ok(None);
        }
        let file_type = type_of_number(found).ok_or(MetadataFault::EntryType { place, found })?;
        let inode = InodeRef { block: u64::from(self.run.start_block), offset };
        let number = i64::from(self.run.inode_number).plus(inode_number.into());
        Ok(Some(RawEntry { id: InodeId(inode.to_raw()), file_type, number }))
    }

    /// Continues at a [`DirCursor`]; the cursor is at the header of its run.
    fn resume(&mut self, from: DirCursor) -> Result<()> {
        let done = ((from.0 >> 20) & 0xfff) as u32;
        let delta = (from.0 & 0xf_ffff) as u32;
        if delta == 0 || self.at >= self.len {
            return Ok(());
        }
        self.read_header()?;
        let entries_len = left(delta, self.records.shape().run_header_len);
        if let Some(cursor) = &mut self.cursor {
            Self::take(cursor, &mut self.at, self.len, entries_len)?;
            cursor.skip(u64::from(entries_len))?;
        }
        self.run.done = done.min(self.run.count);
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct IndexEntry {
    pub(crate) place: Place,
    /// Offset of a header in the listing.
    pub(crate) index: u32,
    /// Metadata block of the header, relative to the directory table.
    pub(crate) start_block: u32,
    pub(crate) name: Vec<u8>,
}

fn raw_dir<R: Records>(records: &R, id: InodeId) -> Result<(RawInode, RawDir)> {
    let raw = raw_inode(records, id)?;
    match raw.kind {
        RawKind::Dir(dir) => Ok((raw, dir)),
        _ => Err(raw.not_a("directory")),
    }
}

pub(crate) fn listing_len<R: Records>(records: &R, dir: &RawDir) -> u32 {
    left(dir.file_size, records.shape().dir_size_extra)
}

pub(crate) fn listing<'a, R: Records>(records: &'a R, dir: &RawDir) -> Result<Listing<'a, R>> {
    let len = listing_len(records, dir);
    let cursor = match len {
        0 => None,
        _ => Some(header_cursor(records, dir.start_block, u32::from(dir.offset))?),
    };
    Ok(Listing { records, cursor, len, at: 0, run: Run::NONE, name: Vec::new(), misnamed: None })
}

fn header_cursor<R: Records>(records: &R, start_block: u32, offset: u32) -> Result<Cursor<'_>> {
    let table = records.layout().directories;
    records.metadata().cursor(table, "directory header", u64::from(start_block), offset)
}

/// Returns a listing from the header at `target` bytes on; `near` is an index entry at or before
/// it.
fn listing_at<'a, R: Records>(
    records: &'a R,
    dir: &RawDir,
    near: Option<&IndexEntry>,
    target: u32,
) -> Result<Listing<'a, R>> {
    let mut listing = listing(records, dir)?;
    if listing.cursor.is_none() || target >= listing.len {
        listing.at = listing.len;
        return Ok(listing);
    }
    if let Some(near) = near {
        let offset = usize::from(dir.offset).plus(near.index as usize) % SQUASHFS_METADATA_SIZE;
        listing.cursor = Some(header_cursor(records, near.start_block, u32_of(offset as u64))?);
        listing.at = near.index;
    }
    if let Some(cursor) = &mut listing.cursor {
        cursor.skip(u64::from(target.minus(listing.at)))?;
    }
    listing.at = target;
    Ok(listing)
}

pub(crate) fn each_index_entry<R: Records>(
    records: &R,
    raw: &RawInode,
    dir: &RawDir,
    mut visit: impl FnMut(IndexEntry) -> Result<bool>,
) -> Result<()> {
    if dir.i_count == 0 {
        return Ok(());
    }
    let len = listing_len(records, dir);
    let table = records.layout().inodes;
    let mut cursor = Cursor::resume(records.metadata(), table, "directory index entry", raw.tail)?;
    for _ in 0..dir.i_count {
        let place = cursor.place();
        let IndexHead { index, start_block, name_len } = records.index_head(&mut cursor)?;
        if index >= len {
            return Err(MetadataFault::IndexOffset { place, found: index, len }.into());
        }
        if name_len as usize > SQUASHFS_NAME_LEN {
            return Err(MetadataFault::IndexName { place, found: name_len }.into());
        }
        let name = cursor.read_vec(name_len)?;
        if !visit(IndexEntry { place, index, start_block, name })? {
            break;
        }
    }
    Ok(())
}

/// Returns the last index entry for which `before` is true; it must be true for a prefix of the
/// index only.
fn index_entry<R: Records>(
    records: &R,
    raw: &RawInode,
    dir: &RawDir,
    before: impl Fn(&IndexEntry) -> bool,
) -> Result<Option<IndexEntry>> {
    let mut last = None;
    each_index_entry(records, raw, dir, |entry| {
        let wanted = before(&entry);
        if wanted {
            last = Some(entry);
        }
        Ok(wanted)
    })?;
    Ok(last)
}

pub(crate) fn each_entry<R: Records>(
    records: &R,
    id: InodeId,
    from: DirCursor,
    visit: &mut dyn FnMut(packfs_format::DirEntry, DirCursor) -> ControlFlow<()>,
) -> Result<()> {
    let (raw, dir) = raw_dir(records, id)?;
    let mut listing = if from.0 == 0 {
        listing(records, &dir)?
    } else {
        let target = (from.0 >> 32) as u32;
        let near = index_entry(records, &raw, &dir, |entry| entry.index <= target)?;
        let mut listing = listing_at(records, &dir, near.as_ref(), target)?;
        listing.resume(from)?;
        listing
    };
    while let Some(RawEntry { id, file_type, .. }) = listing.next()? {
        let entry = packfs_format::DirEntry { name: listing.name.clone(), id, file_type };
        if visit(entry, listing.cursor_after()).is_break() {
            break;
        }
    }
    Ok(())
}

/// First and last metadata block of a lookup.
type Blocks = Option<(u64, u64)>;

/// Blocks that a lookup reads.
pub(crate) struct Way {
    pub(crate) index: Blocks,
    pub(crate) list: Blocks,
}

/// Returns the blocks that a lookup by the index reads, whether or not the name exists.
pub(crate) fn way_to<R: Records>(records: &R, id: InodeId, name: &[u8]) -> Result<Way> {
    let (raw, dir) = raw_dir(records, id)?;
    let (mut near, mut index) = (None, None);
    each_index_entry(records, &raw, &dir, |entry| {
        index = Some((raw.tail.at, entry.place.at));
        let is_before = entry.name.as_slice() <= name;
        if is_before {
            near = Some(entry);
        }
        Ok(is_before)
    })?;
    let mut listing = listing_at(records, &dir, near.as_ref(), near.as_ref().map_or(0, |near| near.index))?;
    let first = listing.cursor.as_ref().map(|cursor| cursor.position().at);
    while listing.next()?.is_some() && listing.name.as_slice() < name {}
    let last = listing.cursor.as_ref().map(|cursor| cursor.position().at);
    Ok(Way { index, list: first.zip(last) })
}

/// See [`packfs_format::Directories::lookup`]. Names not found by the index are searched among all
/// entries, unless these are known to be sorted.
pub(crate) fn find_entry<R: Records>(records: &R, id: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
    let (raw, dir) = raw_dir(records, id)?;
    let sorted_dirs = records.metadata().sorted_dirs();
    if dir.i_count > 0 {
        let found = find_by_index(records, &raw, &dir, name);
        match found {
            Ok(None) if !sorted_dirs.contains(id) => {}
            found => return found,
        }
    }
    sorted_dirs.find_among_all(id, name, |visit| {
        let mut listing = listing(records, &dir)?;
        while let Some(entry) = listing.next()? {
            if visit(&listing.name, entry.id).is_break() {
                break;
            }
        }
        Ok(())
    })
}

fn find_by_index<R: Records>(
    records: &R,
    raw: &RawInode,
    dir: &RawDir,
    name: &[u8],
) -> Result<Option<InodeId>> {
    let near = index_entry(records, raw, dir, |entry| entry.name.as_slice() <= name)?;
    let target = near.as_ref().map_or(0, |near| near.index);
    let mut listing = listing_at(records, dir, near.as_ref(), target)?;
    while let Some(entry) = listing.next()? {
        match listing.name.as_slice().cmp(name) {
            std::cmp::Ordering::Equal => return Ok(Some(entry.id)),
            std::cmp::Ordering::Greater => return Ok(None),
            std::cmp::Ordering::Less => {}
        }
    }
    Ok(None)
}

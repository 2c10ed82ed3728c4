//! Directories: blocks of entries, sorted as a whole, read in order or searched by bisection.
//!
//! Owns the decoding of blocks, and the rules for `.` and `..`. Invariant: a returned name is
//! within its block and has 1 to 255 bytes; [`packfs_core::Name`] decides if it is valid.

use crate::corruption::Place;
use crate::disk::*;
use crate::inode::not_a;
use crate::raw::RawInode;
use crate::reader::Reader;
use packfs_core::{Error, ErrorKind, FileType, Result, len_of, usize_of};
use packfs_format::{DirCursor, DirEntry, InodeId, structure, units::*};
use std::mem::size_of;
use std::ops::{ControlFlow, Range};

const DIRENT_LEN: usize = size_of::<Dirent>();

/// A stored entry, including `.` and `..`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawEntry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) nid: u64,
    /// File type as stored; see [`entry_type`].
    pub(crate) file_type: u8,
}

pub(crate) fn entry_type(number: u8) -> Option<FileType> {
    Some(match number {
        EROFS_FT_REG_FILE => FileType::File,
        EROFS_FT_DIR => FileType::Directory,
        EROFS_FT_CHRDEV => FileType::CharDevice,
        EROFS_FT_BLKDEV => FileType::BlockDevice,
        EROFS_FT_FIFO => FileType::Fifo,
        EROFS_FT_SOCK => FileType::Socket,
        EROFS_FT_SYMLINK => FileType::Symlink,
        _ => return None,
    })
}

pub(crate) struct DirBlock {
    bytes: Vec<u8>,
    is_whole: bool,
    /// Start of the first name, and end of the entries.
    names_at: usize,
    place: Place,
}

impl DirBlock {
    fn new(bytes: Vec<u8>, is_whole: bool, place: Place) -> Result<DirBlock> {
        let mut block = DirBlock { bytes, is_whole, names_at: DIRENT_LEN, place };
        let first = usize::from(block.dirent(0)?.nameoff.get());
        if first < DIRENT_LEN || !first.is_multiple_of(DIRENT_LEN) || first >= block.bytes.len() {
            return Err(block.fault("a block whose first name starts among its entries, or after it"));
        }
        block.names_at = first;
        Ok(block)
    }

    fn fault(&self, fault: &'static str) -> Error {
        self.place.fault(fault)
    }

    /// At least one.
    pub(crate) fn count(&self) -> usize {
        self.names_at / DIRENT_LEN
    }

    fn dirent(&self, index: usize) -> Result<Dirent> {
        let at = index.times(DIRENT_LEN);
        let found = structure(&self.bytes, at).filter(|_| index < self.count());
        found.ok_or_else(|| self.fault("a block that is too short for an entry"))
    }

    pub(crate) fn entry(&self, index: usize) -> Result<RawEntry<'_>> {
        let dirent = self.dirent(index)?;
        let start = usize::from(dirent.nameoff.get());
        let next = index.plus(1);
        let is_last = next == self.count();
        let end = if is_last { self.bytes.len() } else { usize::from(self.dirent(next)?.nameoff.get()) };
        let name = self.bytes.get(start..end).filter(|_| start >= self.names_at);
        let mut name = name.ok_or_else(|| self.fault("a name outside of its block"))?;
        if is_last {
            let len = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
            let (own, rest) = name.split_at(len);
            // A whole block is padded with zeros; the last block ends with its last name.
            if rest.iter().any(|&byte| byte != 0) || !self.is_whole && !own.is_empty() && !rest.is_empty() {
                return Err(self.fault("a name with a NUL byte"));
            }
            name = own;
        }
        if name.is_empty() || name.len() > EROFS_NAME_LEN {
            return Err(self.fault("a name that is empty or longer than 255 bytes"));
        }
        Ok(RawEntry { name, nid: dirent.nid.get(), file_type: dirent.file_type })
    }

    /// Returns the index of the first entry that is not less than `name`, and true if it is equal.
    fn find(&self, name: &[u8]) -> Result<(usize, bool)> {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            match self.entry(middle)?.name.cmp(name) {
                std::cmp::Ordering::Less => low = middle.plus(1),
                std::cmp::Ordering::Equal => return Ok((middle, true)),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok((low, false))
    }
}

impl Reader {
    pub(crate) fn dir_block_count(&self, raw: &RawInode) -> u64 {
        raw.size.div_ceil(self.geometry.block_len())
    }

    pub(crate) fn dir_block(&self, raw: &RawInode, index: u64) -> Result<DirBlock> {
        let range = self.dir_block_range(raw, index);
        let mut bytes = vec![0; usize_of(len_of(&range))];
        self.read_content(raw, range.start, &mut bytes)?;
        let is_whole = bytes.len() as u64 == self.geometry.block_len();
        DirBlock::new(bytes, is_whole, raw.place.of("directory"))
    }

    fn dir_block_range(&self, raw: &RawInode, index: u64) -> Range<u64> {
        let start = nth_at(0, index, self.geometry.block_len()).min(raw.size);
        start..end_of(start, self.geometry.block_len()).min(raw.size)
    }

    pub(crate) fn raw_dir(&self, id: InodeId) -> Result<RawInode> {
        let raw = self.raw_inode(id.0)?;
        match raw.file_type {
            FileType::Directory => Ok(raw),
            other => Err(not_a("directory", other)),
        }
    }

    pub(crate) fn each_entry(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        let raw = self.raw_dir(dir)?;
        self.each_child(&raw, from, &mut |entry, cursor| {
            self.checked_entry(&raw, entry).map(|entry| visit(entry, cursor))
        })
    }

    /// Calls `visit` for each entry from `from` on except `.` and `..`. A cursor is the index of a
    /// block above 16 bits with the index of an entry. Damaged entries, including those that
    /// `visit` refuses, are skipped: the first error is returned at the end.
    pub(crate) fn each_child(
        &self,
        raw: &RawInode,
        from: DirCursor,
        visit: &mut dyn FnMut(&RawEntry<'_>, DirCursor) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut first = (from.0 & 0xffff) as usize;
        let (mut dots, mut fault) = (Dots::default(), None);
        for index in from.0 >> 16..self.dir_block_count(raw) {
            let block = self.dir_block(raw, index)?;
            for slot in first..block.count() {
                let cursor = DirCursor(index << 16 | (slot as u64).plus(1));
                let visited = block.entry(slot).and_then(|entry| {
                    fault = fault.take().or(dots.order_fault(raw, entry.name));
                    match entry.name {
                        b"." | b".." => self.meet_dot(&mut dots, raw, &entry),
                        _ => visit(&entry, cursor),
                    }
                });
                match visited {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(())) => return Ok(()),
                    Err(error) if error.kind() == ErrorKind::Corrupt => fault = fault.or(Some(error)),
                    Err(error) => return Err(error),
                }
            }
            first = 0;
        }
        let fault = fault.or_else(|| dots.missing(raw).filter(|_| from.0 == 0));
        fault.map_or(Ok(()), Err)
    }

    fn meet_dot(&self, dots: &mut Dots, dir: &RawInode, entry: &RawEntry<'_>) -> Result<ControlFlow<()>> {
        let is_parent = entry.name == b"..";
        let [here, up] = &mut dots.met;
        let met = std::mem::replace(if is_parent { up } else { here }, true);
        let leads_up = if is_parent {
            self.raw_inode(entry.nid)?.file_type == FileType::Directory
        } else {
            entry.nid == dir.nid
        };
        let is_dir = matches!(entry.file_type, EROFS_FT_UNKNOWN | EROFS_FT_DIR);
        let fault = match (met, leads_up) {
            (false, true) if is_dir => return Ok(ControlFlow::Continue(())),
            (false, true) => "an entry \".\" or \"..\" of another type",
            (true, _) => "a second entry \".\" or \"..\"",
            (false, false) => "an entry \".\" or \"..\" that leads to something else",
        };
        Err(dir.place.of("directory").fault(fault))
    }

    fn checked_entry(&self, raw: &RawInode, entry: &RawEntry<'_>) -> Result<DirEntry> {
        let place = raw.place.of("directory");
        if let Err(fault) = packfs_core::Name::new(entry.name) {
            return Err(place.fault(fault));
        }
        let file_type = match entry_type(entry.file_type) {
            Some(file_type) => file_type,
            // Some tools write no type; the inode decides anyway.
            None if entry.file_type == EROFS_FT_UNKNOWN => self.raw_inode(entry.nid)?.file_type,
            None => return Err(place.fault("an entry of an unknown type")),
        };
        Ok(DirEntry { name: entry.name.to_vec(), id: InodeId(entry.nid), file_type })
    }

    /// Searches names that bisection does not find among all entries, unless these are known to be
    /// in order.
    pub(crate) fn find_entry(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        let raw = self.raw_dir(dir)?;
        if matches!(name, b"." | b"..") {
            return Ok(None);
        }
        match self.find_by_halving(&raw, name) {
            Ok(None) if self.sorted_dirs.contains(dir) => Ok(None),
            Err(error) if error.kind() != ErrorKind::Corrupt => Err(error),
            Ok(None) | Err(_) => self.sorted_dirs.find_among_all(dir, name, |visit| {
                self.each_entry(dir, DirCursor(0), &mut |entry, _| visit(&entry.name, entry.id))
            }),
            found => found,
        }
    }

    fn find_by_halving(&self, raw: &RawInode, name: &[u8]) -> Result<Option<InodeId>> {
        // The last block whose first name is not greater.
        let (mut low, mut high) = (0, self.dir_block_count(raw));
        while low < high {
            let middle = low.midpoint(high);
            let block = self.dir_block(raw, middle)?;
            match block.find(name)? {
                (slot, true) => return Ok(Some(InodeId(block.entry(slot)?.nid))),
                (0, _) => high = middle,
                (slot, _) if slot == block.count() => low = middle.plus(1),
                _ => return Ok(None),
            }
        }
        Ok(None)
    }
}

/// Entries `.` and `..` that were met: any other entry with such a name is a file that lost its
/// own.
#[derive(Default)]
struct Dots {
    met: [bool; 2],
    /// The previous name, and true if it is `.` or `..`.
    before: (Vec<u8>, bool),
}

impl Dots {
    /// Returns an error if `.` or `..` is missing where it is required.
    fn missing(&self, dir: &RawInode) -> Option<Error> {
        let is_whole = (self.met[0] || dir.dot_omitted) && self.met[1];
        let place = dir.place.of("directory");
        (!is_whole).then(|| place.fault("no entry \".\" or \"..\""))
    }

    /// Returns an error if `.` or `..` and its neighbor are out of order; for other entries the
    /// listing shows it.
    fn order_fault(&mut self, dir: &RawInode, name: &[u8]) -> Option<Error> {
        let (before, was_dot) = &mut self.before;
        let is_dot = matches!(name, b"." | b"..");
        let is_fault = (is_dot || *was_dot) && name < before.as_slice();
        *was_dot = is_dot;
        before.clear();
        before.extend_from_slice(name);
        let place = dir.place.of("directory");
        is_fault.then(|| place.fault("entries \".\" or \"..\" out of order"))
    }
}

//! What is checked of directories and inodes: walks all of them, each inode once.

use crate::corruption::Place;
use crate::dir::{Listing, RawEntry};
use crate::disk::*;
use crate::inode::{RawDir, RawFile, RawInode, RawKind};
use crate::volume::LegacyVolume;
use crate::walk::Budget;
use packfs_core::check::{Hierarchy, Report, Tally};
use packfs_core::{FileType, ImagePath, InodeId, Result, escaped};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Longest index entry of a directory.
const INDEX_ENTRY_LEN_MAX: u64 = 9 + SQUASHFS_NAME_LEN as u64;

/// What the walk learnt, for the checks of tables.
#[derive(Default)]
pub(super) struct Seen {
    /// Inode by number, from 3.0 on.
    pub(super) numbers: HashMap<u32, InodeId>,
    /// Indexes that inodes use.
    pub(super) uids: HashSet<u16>,
    pub(super) gids: HashSet<u16>,
    pub(super) fragments: HashSet<u32>,
    /// Where each of files' own blocks lies.
    pub(super) data: Vec<Range<u64>>,
    /// Whether any block of a file is compressed.
    pub(super) compressed_data: bool,
    /// Whether everything could be walked, so that what was not seen is not there.
    pub(super) whole: bool,
}

struct Walk<'a, 'r> {
    volume: &'a LegacyVolume,
    report: &'a mut Report<'r>,
    hierarchy: Hierarchy<InodeId, (RawInode, RawDir)>,
    seen: Seen,
    /// What may still be read of listings, and of what follows inodes.
    listings: Budget,
    tails: Budget,
    /// Files with holes in a version that has none.
    early_holes: Tally,
}

/// Walks everything.
pub(super) fn check(volume: &LegacyVolume, report: &mut Report<'_>) -> Result<Seen> {
    let mut walk = Walk {
        volume,
        report,
        hierarchy: Hierarchy::default(),
        seen: Seen { whole: true, ..Seen::default() },
        listings: Budget::of(&volume.geometry.directories),
        tails: Budget::of(&volume.geometry.inodes),
        early_holes: Tally::default(),
    };
    walk.root()?;
    let mut index = 0;
    while let Some((raw, dir)) = walk.hierarchy.dir(index).filter(|_| !walk.report.is_full()) {
        walk.directory(index, raw, dir)?;
        index += 1;
    }
    walk.finish();
    Ok(walk.seen)
}

impl Walk<'_, '_> {
    fn root(&mut self) -> Result<()> {
        let id = InodeId(self.volume.geometry.super_block.root_inode);
        let read = self.volume.raw_inode(id);
        let Some(raw) = self.refused("/", read)? else { return Ok(()) };
        let RawKind::Dir(dir) = raw.kind else {
            self.seen.whole = false;
            self.report.error("/", format_args!("the root is a {}", raw.file_type.word()));
            return Ok(());
        };
        self.inode(&ImagePath::root(), id, &raw)?;
        self.hierarchy.meet_root(id, raw.nlink, (raw, dir));
        Ok(())
    }

    /// Tells what was refused, and remembers that not all could be walked.
    fn refused<T>(&mut self, place: impl std::fmt::Display, result: Result<T>) -> Result<Option<T>> {
        let value = self.report.refused(place, result)?;
        self.seen.whole &= value.is_some();
        Ok(value)
    }

    fn directory(&mut self, index: usize, raw: RawInode, dir: RawDir) -> Result<()> {
        let volume = self.volume;
        let extra = volume.geometry.version().dir_size_extra();
        if dir.file_size < extra {
            let path = self.hierarchy.path(index);
            self.report.note(path, format_args!("directory size {}, at least 3 allowed", dir.file_size));
        }
        let len = u64::from(dir.file_size.saturating_sub(extra));
        let room = self.listings.spend(raw.place, len);
        let room =
            room.and_then(|()| self.tails.spend(raw.place, u64::from(dir.i_count) * INDEX_ENTRY_LEN_MAX));
        if self.listing_refused(index, room)?.is_none() {
            return Ok(());
        }
        let listing = volume.listing(&dir);
        let Some(mut listing) = self.listing_refused(index, listing)? else { return Ok(()) };
        let mut runs = Runs::default();
        let mut order = Order::new(volume.geometry.version().is_sorted());
        let mut subdirs = 0u32;
        loop {
            let next = listing.next();
            let Some(Some(entry)) = self.listing_refused(index, next)? else { break };
            if dir.i_count > 0 {
                runs.keep(&listing);
            }
            if let Some(before) = order.fault(&listing.name) {
                self.hierarchy.order_fault(index, &before, &listing.name, self.report);
            }
            if self.entry(index, &entry, &listing.name)? {
                subdirs = subdirs.saturating_add(1);
            }
            if self.report.is_full() {
                return Ok(());
            }
        }
        self.dir_links(index, raw.nlink, subdirs);
        let checked = self.index(&raw, &dir, &runs);
        self.listing_refused(index, checked)?;
        Ok(())
    }

    fn listing_refused<T>(&mut self, index: usize, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                let path = self.hierarchy.path(index);
                self.refused(path, Err(error))
            }
        }
    }

    /// Checks one entry and, when it is new, its inode. Says whether it is a directory.
    fn entry(&mut self, dir: usize, entry: &RawEntry, name: &[u8]) -> Result<bool> {
        let is_dir = entry.file_type == FileType::Directory;
        if let Some(is_dir) = self.hierarchy.meet_again(entry.id, dir, name, self.report) {
            return Ok(is_dir);
        }
        if self.hierarchy.inode_count() >= self.volume.inode_count_max() {
            if self.hierarchy.inode_count() == self.volume.inode_count_max() && self.seen.whole {
                let count = self.volume.geometry.super_block.inodes;
                self.report.error("superblock", format_args!("counts {count} inodes, but more are named"));
            }
            self.seen.whole = false;
            return Ok(is_dir);
        }
        let read = self.volume.raw_inode(entry.id);
        let raw = match read {
            Ok(raw) => raw,
            Err(error) => {
                let path = self.hierarchy.entry_path(dir, name);
                self.refused(path, Err::<(), _>(error))?;
                return Ok(is_dir);
            }
        };
        let path = self.hierarchy.entry_path(dir, name);
        self.claims(&path, entry, &raw);
        self.inode(&path, entry.id, &raw)?;
        let own = if let RawKind::Dir(own) = raw.kind { Some(own) } else { None };
        let parent = self.hierarchy.dir(dir).map(|(parent, _)| parent.number);
        if let (Some(own), Some(parent)) = (own, parent)
            && self.volume.geometry.version().has_numbers()
            && own.parent_inode != parent
        {
            let found = own.parent_inode;
            self.report.warn(&path, format_args!("parent inode {found}, but it lies in inode {parent}"));
        }
        self.hierarchy.meet(entry.id, raw.nlink, own.map(|own| (raw, own)), dir, name);
        Ok(own.is_some())
    }

    /// Compares what an entry claims with what its inode says.
    fn claims(&mut self, path: &ImagePath, entry: &RawEntry, raw: &RawInode) {
        if entry.file_type != raw.file_type {
            let (claim, truth) = (entry.file_type.word(), raw.file_type.word());
            self.report.warn(path, format_args!("its entry says {claim}, its inode {truth}"));
        }
        let number = raw.number;
        if self.volume.geometry.version().has_numbers() && entry.number != i64::from(number) {
            let claim = entry.number;
            self.report.error(path, format_args!("its entry says inode {claim}, its inode {number}"));
        }
    }

    /// Checks an inode that is met for the first time.
    fn inode(&mut self, path: &ImagePath, id: InodeId, raw: &RawInode) -> Result<()> {
        if self.volume.geometry.version().has_numbers() {
            self.number(path, id, raw.number);
        }
        let plain = self.volume.plain_inode(id, raw);
        if self.refused(path, plain)?.is_some() {
            self.seen.uids.insert(raw.uid);
            self.seen.gids.insert(raw.gid);
        }
        match raw.kind {
            RawKind::File(file) => self.file(path, raw, &file),
            RawKind::Symlink(len) => self.symlink(path, id, raw, len),
            _ => Ok(()),
        }
    }

    fn number(&mut self, path: &ImagePath, id: InodeId, number: u32) {
        if self.seen.numbers.insert(number, id).is_some_and(|other| other != id) {
            // Kernels tell inodes apart by their numbers: one file would show up in place of the other.
            self.report.error(path, format_args!("inode number {number} is another inode's, too"));
        }
        let count = self.volume.geometry.super_block.inodes;
        if number > count {
            self.report.warn(path, format_args!("inode number {number}, the image counts {count} inodes"));
        }
    }

    fn file(&mut self, path: &ImagePath, raw: &RawInode, file: &RawFile) -> Result<()> {
        let room = self
            .tails
            .spend(raw.place, self.volume.word_count(file) * self.volume.geometry.version().block_word_len());
        if self.refused(path, room)?.is_none() {
            return Ok(());
        }
        let mut end = file.start_block;
        let (mut compressed, mut stored_blocks) = (false, 0);
        let blocks = &mut self.seen.data;
        let walked = self.volume.each_stored_block(raw, file, |stored| {
            let start = end;
            end += u64::from(stored.len);
            blocks.push(start..end);
            compressed |= stored.compressed;
            stored_blocks += 1;
        });
        let whole = self.refused(path, walked)?.is_some();
        self.seen.compressed_data |= compressed;
        let is_old = self.volume.geometry.version() != Version::V3_1;
        if whole && is_old && stored_blocks < self.volume.word_count(file) {
            self.early_holes.add(|| format!("\"{path}\""));
        }
        if file.fragment == SQUASHFS_INVALID_FRAG {
            return Ok(());
        }
        self.seen.fragments.insert(file.fragment);
        let tail = self.volume.tail_extent(raw, file);
        self.refused(path, tail)?;
        Ok(())
    }

    fn symlink(&mut self, path: &ImagePath, id: InodeId, raw: &RawInode, len: u16) -> Result<()> {
        let room = self.tails.spend(raw.place, u64::from(len));
        let target = room.and_then(|()| self.volume.link_target(id));
        self.refused(path, target)?;
        if len > 4096 {
            self.report.warn(path, format_args!("link target of {len} bytes, kernels read 4096 at most"));
        }
        Ok(())
    }

    fn dir_links(&mut self, index: usize, nlink: u32, subdirs: u32) {
        if self.volume.geometry.version().has_numbers() && nlink != subdirs.saturating_add(2) {
            let path = self.hierarchy.path(index);
            self.report.warn(path, format_args!("link count {nlink}, but it has {subdirs} subdirectories"));
        }
    }

    /// Compares a directory's index with its runs.
    fn index(&mut self, raw: &RawInode, dir: &RawDir, runs: &Runs) -> Result<()> {
        let mut before = None;
        let start = self.volume.geometry.directories.start;
        let report = &mut *self.report;
        self.volume.each_index_entry(raw, dir, |entry| {
            if let Some(before) = before.filter(|before| entry.index <= *before) {
                report.warn(entry.place, format_args!("offset {}, more than {before} allowed", entry.index));
            }
            before = Some(entry.index);
            match runs.0.get(&entry.index) {
                None => report.error(entry.place, format_args!("no directory header at {}", entry.index)),
                Some((at, _)) if *at != start.saturating_add(u64::from(entry.start_block)) => {
                    let found = entry.start_block;
                    let wanted = at.saturating_sub(start);
                    report
                        .error(entry.place, format_args!("block {found:#x}, the header lies in {wanted:#x}"));
                }
                Some((_, name)) if **name != *entry.name => {
                    let (found, wanted) = (escaped(&entry.name), escaped(name));
                    report.error(
                        entry.place,
                        format_args!("name \"{found}\", the first entry is \"{wanted}\""),
                    );
                }
                Some(_) => {}
            }
            Ok(!report.is_full())
        })
    }

    fn finish(&mut self) {
        self.seen.whole &= !self.report.is_full();
        if self.seen.whole {
            self.hierarchy.check_links(self.report);
        }
        if let Some(text) = self.early_holes.told("files with holes, which came with version 3.1") {
            self.report.warn("superblock", text);
        }
        let (count, met) = (self.volume.geometry.super_block.inodes, self.hierarchy.inode_count());
        if self.seen.whole && u64::from(count) != met {
            self.report.warn("superblock", format_args!("counts {count} inodes, but {met} are named"));
        }
    }
}

/// The runs of a listing by offset: the metadata block of the header, and the first name.
#[derive(Default)]
struct Runs(HashMap<u32, (u64, Box<[u8]>)>);

impl Runs {
    fn keep(&mut self, listing: &Listing<'_>) {
        if listing.run.done == 1 {
            let Place { at, .. } = listing.run.place;
            self.0.insert(listing.run.at, (at, listing.name.as_slice().into()));
        }
    }
}

/// The names of a listing met so far: the last one where they rise, else all of them.
struct Order {
    before: Vec<u8>,
    /// Only where listings are not sorted.
    names: Option<HashSet<Box<[u8]>>>,
}

impl Order {
    fn new(sorted: bool) -> Order {
        Order { before: Vec::new(), names: (!sorted).then(HashSet::new) }
    }

    /// The name that this one may not follow, if there is one.
    fn fault(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        if let Some(names) = &mut self.names {
            return (!names.insert(name.into())).then(|| name.to_vec());
        }
        let before = std::mem::replace(&mut self.before, name.to_vec());
        (name <= before.as_slice()).then_some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_rise_where_listings_are_sorted_and_differ_elsewhere() {
        let mut sorted = Order::new(true);
        assert_eq!(sorted.fault(b"b"), None);
        assert_eq!(sorted.fault(b"a"), Some(b"b".to_vec()));
        assert_eq!(sorted.fault(b"a"), Some(b"a".to_vec()));
        let mut free = Order::new(false);
        assert_eq!((free.fault(b"b"), free.fault(b"a")), (None, None));
        assert_eq!(free.fault(b"b"), Some(b"b".to_vec()));
    }
}

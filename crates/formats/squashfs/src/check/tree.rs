//! Checks of directories and inodes: walks all of them, each inode once.

use super::order::Order;
use super::rules::TreeRules;
use crate::data::{each_stored_block, tail_extent};
use crate::dir::{self, Listing, RawEntry};
use crate::fault::MetadataFault;
use crate::inode::{link_target, raw_inode, word_count};
use crate::place::Place;
use crate::raw::{RawDir, RawFile, RawInode, RawKind};
use crate::records::{Records, SQUASHFS_INVALID_FRAG, SQUASHFS_NAME_LEN, Shape};
use crate::walk::{budget_of, inode_count_max};
use packfs_core::{FileType, Result, escaped, range_at};
use packfs_format::check::{DataPlaces, EntryPath, Hierarchy, Report};
use packfs_format::{Budget, InodeId, units::*};
use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub(crate) struct Seen {
    /// Inode by number, since 3.0.
    pub(super) numbers: HashMap<u32, InodeId>,
    /// Indexes of the users and groups of inodes.
    pub(crate) uids: HashSet<u16>,
    pub(crate) gids: HashSet<u16>,
    pub(super) fragments: HashSet<u32>,
    pub(super) data: DataPlaces,
    pub(crate) compressed_data: bool,
    /// True if the whole tree was walked, so that the rest is unused.
    pub(crate) whole: bool,
}

struct Walk<'a, 'r, R, T> {
    records: &'a R,
    shape: Shape,
    rules: &'a mut T,
    report: &'a mut Report<'r>,
    hierarchy: Hierarchy<InodeId, (RawInode, RawDir)>,
    seen: Seen,
    listings: Budget,
    tails: Budget,
}

/// Errors: `Io`; all else is reported.
pub(crate) fn check_tree<R: Records>(
    records: &R,
    rules: &mut impl TreeRules,
    report: &mut Report<'_>,
) -> Result<Seen> {
    let mut walk = Walk {
        records,
        shape: records.shape(),
        rules,
        report,
        hierarchy: Hierarchy::default(),
        seen: Seen { whole: true, ..Seen::default() },
        listings: budget_of(&records.layout().directories),
        tails: budget_of(&records.layout().inodes),
    };
    walk.root()?;
    for index in 0.. {
        let Some((raw, dir)) = walk.hierarchy.dir(index).filter(|_| !walk.report.is_full()) else { break };
        walk.directory(index, raw, dir)?;
    }
    walk.finish();
    Ok(walk.seen)
}

impl<R: Records, T: TreeRules> Walk<'_, '_, R, T> {
    fn root(&mut self) -> Result<()> {
        let id = self.records.layout().root;
        let read = raw_inode(self.records, id);
        let Some(raw) = self.refused("/", read)? else { return Ok(()) };
        let RawKind::Dir(dir) = raw.kind else {
            self.seen.whole = false;
            self.report.error("/", format_args!("the root is a {}", raw.file_type.word()));
            return Ok(());
        };
        self.inode(&self.hierarchy.path(0), id, &raw)?;
        self.hierarchy.meet_root(id, raw.nlink, (raw, dir));
        Ok(())
    }

    /// Reports an error of the reader, and records that the walk is incomplete.
    fn refused<V>(&mut self, place: impl std::fmt::Display, result: Result<V>) -> Result<Option<V>> {
        let value = self.report.refused(place, result)?;
        self.seen.whole &= value.is_some();
        Ok(value)
    }

    fn directory(&mut self, index: usize, raw: RawInode, dir: RawDir) -> Result<()> {
        let records = self.records;
        if dir.file_size < self.shape.dir_size_extra {
            let path = self.hierarchy.path(index);
            let least = self.shape.dir_size_extra;
            self.report
                .warn(path, format_args!("directory size {}, at least {least} allowed", dir.file_size));
        }
        let index_entry_len_max = u64::from(self.shape.index_entry_len).plus(SQUASHFS_NAME_LEN as u64);
        let index_len_max = u64::from(dir.i_count).times(index_entry_len_max);
        let overlap = || MetadataFault::Overlap { place: raw.place };
        let room = self.listings.spend(dir::listing_len(records, &dir).into(), overlap);
        let room = room.and_then(|()| self.tails.spend(index_len_max, overlap));
        if self.listing_refused(index, room)?.is_none() {
            return Ok(());
        }
        let listing = dir::listing(records, &dir);
        let Some(mut listing) = self.listing_refused(index, listing)? else { return Ok(()) };
        let mut runs = Runs::default();
        let mut order = Order::new(self.shape.is_sorted);
        let (mut entries, mut subdirs) = (0u32, 0u32);
        loop {
            let next = listing.next();
            let Some(Some(entry)) = self.listing_refused(index, next)? else { break };
            entries = entries.plus(1);
            if dir.i_count > 0 {
                runs.keep(&listing);
            }
            if let Some(before) = order.fault(&listing.name) {
                self.hierarchy.order_fault(index, &before, &listing.name, self.report);
            }
            if self.entry(index, &entry, &listing.name)? {
                subdirs = subdirs.plus(1);
            }
            if self.report.is_full() {
                return Ok(());
            }
        }
        self.dir_links(index, raw.nlink, entries, subdirs);
        let checked = self.index(&raw, &dir, &runs);
        self.listing_refused(index, checked)?;
        Ok(())
    }

    fn listing_refused<V>(&mut self, index: usize, result: Result<V>) -> Result<Option<V>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                let path = self.hierarchy.path(index);
                self.refused(path, Err(error))
            }
        }
    }

    /// Checks an entry, and its inode when it is met first. Returns true for a directory.
    fn entry(&mut self, dir: usize, entry: &RawEntry, name: &[u8]) -> Result<bool> {
        let is_dir = entry.file_type == FileType::Directory;
        if let Some(is_dir) = self.hierarchy.meet_again(entry.id, dir, name, self.report) {
            if let Ok(raw) = raw_inode(self.records, entry.id) {
                self.claims(&self.hierarchy.entry_path(dir, name), entry, &raw);
            }
            return Ok(is_dir);
        }
        let max = inode_count_max(self.records);
        if self.hierarchy.inode_count() >= max {
            if self.hierarchy.inode_count() == max && self.seen.whole {
                let count = self.records.layout().inode_count;
                self.report.error("superblock", format_args!("counts {count} inodes, but more are named"));
            }
            self.seen.whole = false;
            return Ok(is_dir);
        }
        let raw = match raw_inode(self.records, entry.id) {
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
            && self.shape.has_numbers
            && own.parent_inode != parent
        {
            let found = own.parent_inode;
            self.report.warn(&path, format_args!("parent inode {found}, but it is in inode {parent}"));
        }
        self.hierarchy.meet(entry.id, raw.nlink, own.map(|own| (raw, own)), dir, name);
        Ok(own.is_some())
    }

    fn claims(&mut self, path: &EntryPath<'_>, entry: &RawEntry, raw: &RawInode) {
        if entry.file_type != raw.file_type {
            let (claim, truth) = (entry.file_type.word(), raw.file_type.word());
            self.report.error(path, format_args!("its entry says {claim}, its inode {truth}"));
        }
        let number = raw.number;
        if self.shape.has_numbers && entry.number != i64::from(number) {
            let claim = entry.number;
            self.report.error(path, format_args!("its entry says inode {claim}, its inode {number}"));
        }
    }

    fn inode(&mut self, path: &EntryPath<'_>, id: InodeId, raw: &RawInode) -> Result<()> {
        if self.shape.has_numbers {
            self.number(path, id, raw.number);
        }
        self.rules.inode(path, raw, self.report);
        let plain = self.records.plain_inode(id, raw);
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

    fn number(&mut self, path: &EntryPath<'_>, id: InodeId, number: u32) {
        if self.seen.numbers.insert(number, id).is_some_and(|other| other != id) {
            // Kernels identify inodes by number: one file would appear instead of the other.
            self.report.error(path, format_args!("inode number {number} is another inode's, too"));
        }
        let count = self.records.layout().inode_count;
        if number == 0 || number > count {
            self.report.error(path, format_args!("inode number {number}, the image counts {count} inodes"));
        }
    }

    fn file(&mut self, path: &EntryPath<'_>, raw: &RawInode, file: &RawFile) -> Result<()> {
        let words = word_count(self.records, file);
        let len = words.times(self.shape.size_word_len);
        let room = self.tails.spend(len, || MetadataFault::Overlap { place: raw.place });
        if self.refused(path, room)?.is_none() {
            return Ok(());
        }
        let mut end = file.start_block;
        let (mut compressed, mut holes) = (false, words);
        let blocks = &mut self.seen.data;
        let walked = each_stored_block(self.records, raw, file, |stored| {
            let block = range_at(end, stored.len.into());
            end = block.end;
            blocks.add(block);
            compressed |= stored.compressed;
            holes = holes.minus(1);
        });
        let is_walked = self.refused(path, walked)?.is_some();
        self.seen.compressed_data |= compressed;
        if is_walked && holes > 0 {
            self.rules.holes(path, holes);
        }
        if file.sparse > file.file_size {
            let (sparse, len) = (file.sparse, file.file_size);
            self.report.warn(path, format_args!("{sparse} bytes of holes in a file of {len} bytes"));
        }
        if file.fragment == SQUASHFS_INVALID_FRAG {
            return Ok(());
        }
        self.seen.fragments.insert(file.fragment);
        let is_whole = file.file_size.is_multiple_of(u64::from(self.records.layout().block_len));
        if is_whole && self.rules.whole_tail(path) {
            return Ok(());
        }
        let tail = tail_extent(self.records, raw, file);
        self.refused(path, tail)?;
        Ok(())
    }

    fn symlink(&mut self, path: &EntryPath<'_>, id: InodeId, raw: &RawInode, len: u32) -> Result<()> {
        let room = self.tails.spend(len.into(), || MetadataFault::Overlap { place: raw.place });
        let target = room.and_then(|()| link_target(self.records, id));
        self.refused(path, target)?;
        if len > 4096 {
            self.report.warn(path, format_args!("link target of {len} bytes, kernels read 4096 at most"));
        }
        Ok(())
    }

    fn dir_links(&mut self, index: usize, nlink: u32, entries: u32, subdirs: u32) {
        if !self.shape.has_numbers || nlink == subdirs.plus(2) {
            return;
        }
        let path = self.hierarchy.path(index);
        if nlink == 0 || nlink > entries.plus(2) {
            let fault = format_args!("link count {nlink}, but it has {entries} entries");
            self.report.error(path, fault);
            return;
        }
        if !self.rules.dir_links(&path, nlink, entries) {
            self.report.warn(path, format_args!("link count {nlink}, but it has {subdirs} subdirectories"));
        }
    }

    fn index(&mut self, raw: &RawInode, dir: &RawDir, runs: &Runs) -> Result<()> {
        let mut before = None;
        let start = self.records.layout().directories.start;
        let report = &mut *self.report;
        dir::each_index_entry(self.records, raw, dir, |entry| {
            if let Some(before) = before.filter(|before| entry.index <= *before) {
                report.warn(entry.place, format_args!("offset {}, more than {before} allowed", entry.index));
            }
            before = Some(entry.index);
            match runs.0.get(&entry.index) {
                None => report.error(entry.place, format_args!("no directory header at {}", entry.index)),
                Some((at, _)) if *at != start.plus(u64::from(entry.start_block)) => {
                    let found = entry.start_block;
                    let wanted = at.minus(start);
                    report.error(entry.place, format_args!("block {found:#x}, the header is in {wanted:#x}"));
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
        self.rules.finish(self.report);
        let count = self.records.layout().inode_count;
        let met = self.hierarchy.inode_count();
        if self.seen.whole && u64::from(count) != met {
            // Inodes without a name are lost.
            self.report.error("superblock", format_args!("counts {count} inodes, but {met} are named"));
        }
    }
}

/// Runs of a listing by offset: metadata block of the header, and first name.
#[derive(Default)]
struct Runs(HashMap<u32, (u64, Box<[u8]>)>);

impl Runs {
    fn keep<R>(&mut self, listing: &Listing<'_, R>) {
        if listing.run.done == 1 {
            let Place { at, .. } = listing.run.place;
            self.0.insert(listing.run.at, (at, listing.name.as_slice().into()));
        }
    }
}

//! What is checked of directories and inodes: walks all of them, each inode once.

use crate::corruption::Place;
use crate::dir::{Listing, RawEntry};
use crate::disk::*;
use crate::inode::{RawDir, RawFile, RawInode, RawKind};
use crate::volume::SquashfsVolume;
use crate::walk::Budget;
use packfs_core::check::{Hierarchy, Report, Tally};
use packfs_core::{FileType, ImagePath, InodeId, Result, escaped};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Longest index entry of a directory.
const INDEX_ENTRY_LEN_MAX: u64 = (size_of::<DirIndex>() + SQUASHFS_NAME_LEN) as u64;

/// What the walk learnt, for the checks of tables.
#[derive(Default)]
pub(super) struct Seen {
    /// Inode by number.
    pub(super) numbers: HashMap<u32, InodeId>,
    /// Indexes that inodes use.
    pub(super) ids: HashSet<u16>,
    pub(super) fragments: HashSet<u32>,
    pub(super) xattrs: HashSet<u32>,
    /// Where each of files' own blocks lies.
    pub(super) data: Vec<Range<u64>>,
    /// Whether any block of a file is compressed.
    pub(super) compressed_data: bool,
    /// Whether everything could be walked, so that what was not seen is not there.
    pub(super) whole: bool,
}

struct Walk<'a, 'r> {
    volume: &'a SquashfsVolume,
    report: &'a mut Report<'r>,
    hierarchy: Hierarchy<InodeId, (RawInode, RawDir)>,
    seen: Seen,
    /// What may still be read of listings, and of what follows inodes.
    listings: Budget,
    tails: Budget,
    /// Directories that count every entry as a link to them.
    counts_entries: Tally,
    type_bits: Tally,
    whole_tails: Tally,
}

/// Walks everything.
pub(super) fn check(volume: &SquashfsVolume, report: &mut Report<'_>) -> Result<Seen> {
    let mut walk = Walk {
        volume,
        report,
        hierarchy: Hierarchy::default(),
        seen: Seen { whole: true, ..Seen::default() },
        listings: Budget::of(&volume.geometry.directories),
        tails: Budget::of(&volume.geometry.inodes),
        counts_entries: Tally::default(),
        type_bits: Tally::default(),
        whole_tails: Tally::default(),
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
        let id = InodeId(self.volume.geometry.super_block.root_inode.get());
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
        if dir.file_size < DIR_SIZE_EXTRA {
            let path = self.hierarchy.path(index);
            self.report.note(path, format_args!("directory size {}, at least 3 allowed", dir.file_size));
        }
        let len = u64::from(dir.file_size.saturating_sub(DIR_SIZE_EXTRA));
        let room = self.listings.spend(raw.place, len);
        let room =
            room.and_then(|()| self.tails.spend(raw.place, u64::from(dir.i_count) * INDEX_ENTRY_LEN_MAX));
        if self.listing_refused(index, room)?.is_none() {
            return Ok(());
        }
        let listing = volume.listing(&dir);
        let Some(mut listing) = self.listing_refused(index, listing)? else { return Ok(()) };
        let mut runs = Runs::default();
        let mut before: Vec<u8> = Vec::new();
        let (mut entries, mut subdirs) = (0u32, 0u32);
        loop {
            let next = listing.next();
            let Some(Some(entry)) = self.listing_refused(index, next)? else { break };
            entries = entries.saturating_add(1);
            if dir.i_count > 0 {
                runs.keep(&listing);
            }
            if listing.name <= before {
                self.hierarchy.order_fault(index, &before, &listing.name, self.report);
            }
            before.clone_from(&listing.name);
            if self.entry(index, &entry, &listing.name)? {
                subdirs = subdirs.saturating_add(1);
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
                let count = self.volume.geometry.super_block.inodes.get();
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
        let parent = self.hierarchy.dir(dir).map(|(parent, _)| parent.base.inode_number.get());
        if let (Some(own), Some(parent)) = (own, parent)
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
        let number = raw.base.inode_number.get();
        if entry.number != i64::from(number) {
            let claim = entry.number;
            self.report.error(path, format_args!("its entry says inode {claim}, its inode {number}"));
        }
    }

    /// Checks an inode that is met for the first time.
    fn inode(&mut self, path: &ImagePath, id: InodeId, raw: &RawInode) -> Result<()> {
        let number = raw.base.inode_number.get();
        if self.seen.numbers.insert(number, id).is_some_and(|other| other != id) {
            // Kernels tell inodes apart by their numbers: one file would show up in place of the other.
            self.report.error(path, format_args!("inode number {number} is another inode's, too"));
        }
        let count = self.volume.geometry.super_block.inodes.get();
        if number > count {
            self.report.warn(path, format_args!("inode number {number}, the image counts {count} inodes"));
        }
        self.mode(path, raw);
        let plain = self.volume.plain_inode(raw);
        if self.refused(path, plain)?.is_some() {
            self.seen.ids.insert(raw.base.uid.get());
            self.seen.ids.insert(raw.base.guid.get());
        }
        self.xattr_index(path, raw);
        match raw.kind {
            RawKind::File(file) => self.file(path, raw, &file),
            RawKind::Symlink(len) => self.symlink(path, id, raw, len),
            _ => Ok(()),
        }
    }

    fn mode(&mut self, path: &ImagePath, raw: &RawInode) {
        let mode = raw.base.mode.get();
        let type_bits = u32::from(mode & !0o7777);
        if type_bits & !raw.file_type.mode_bits() != 0 {
            let word = raw.file_type.word();
            self.report
                .error(path, format_args!("mode {mode:#o} would make kernels take the {word} for another"));
        } else if type_bits != 0 {
            self.type_bits.add(|| format!("\"{path}\""));
        }
    }

    fn xattr_index(&mut self, path: &ImagePath, raw: &RawInode) {
        if raw.xattr == SQUASHFS_INVALID_XATTR {
            return;
        }
        match self.volume.geometry.xattrs.as_ref().map(|tables| tables.sets.count) {
            None => {
                self.report.note(path, format_args!("xattr set {}, but the image has no sets", raw.xattr))
            }
            Some(count) if raw.xattr >= count => {
                self.report
                    .error(path, format_args!("xattr set {}, but the image has {count} sets", raw.xattr));
            }
            Some(_) => {
                self.seen.xattrs.insert(raw.xattr);
            }
        }
    }

    fn file(&mut self, path: &ImagePath, raw: &RawInode, file: &RawFile) -> Result<()> {
        let room = self.tails.spend(raw.place, self.volume.word_count(file) * 4);
        if self.refused(path, room)?.is_none() {
            return Ok(());
        }
        let mut end = file.start_block;
        let mut compressed = false;
        let blocks = &mut self.seen.data;
        let walked = self.volume.each_stored_block(raw, file, |stored| {
            let start = end;
            end += u64::from(stored.len);
            blocks.push(start..end);
            compressed |= stored.compressed;
        });
        self.refused(path, walked)?;
        self.seen.compressed_data |= compressed;
        if file.sparse > file.file_size {
            let (sparse, len) = (file.sparse, file.file_size);
            self.report.warn(path, format_args!("{sparse} bytes of holes in a file of {len} bytes"));
        }
        if file.fragment == SQUASHFS_INVALID_FRAG {
            return Ok(());
        }
        self.seen.fragments.insert(file.fragment);
        if file.file_size.is_multiple_of(u64::from(self.volume.geometry.block_len)) {
            self.whole_tails.add(|| format!("\"{path}\""));
            return Ok(());
        }
        let tail = self.volume.tail_extent(raw, file);
        self.refused(path, tail)?;
        Ok(())
    }

    fn symlink(&mut self, path: &ImagePath, id: InodeId, raw: &RawInode, len: u32) -> Result<()> {
        let room = self.tails.spend(raw.place, u64::from(len));
        let target = room.and_then(|()| self.volume.link_target(id));
        self.refused(path, target)?;
        if len > 4096 {
            self.report.warn(path, format_args!("link target of {len} bytes, kernels read 4096 at most"));
        }
        Ok(())
    }

    fn dir_links(&mut self, index: usize, nlink: u32, entries: u32, subdirs: u32) {
        if nlink == subdirs.saturating_add(2) {
            return;
        }
        let path = self.hierarchy.path(index);
        if nlink == entries.saturating_add(2) {
            self.counts_entries.add(|| format!("\"{path}\""));
        } else {
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
        if let Some(text) = self.counts_entries.told("directories count every entry as a link") {
            self.report.note("link counts", text);
        }
        if let Some(text) = self.type_bits.told("inodes have type bits in their mode") {
            self.report.note("modes", text);
        }
        let what = "files of whole blocks name a fragment, and newer kernels refuse to read those";
        if let Some(text) = self.whole_tails.told(what) {
            self.report.warn("fragments", text);
        }
        let (count, met) = (self.volume.geometry.super_block.inodes.get(), self.hierarchy.inode_count());
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

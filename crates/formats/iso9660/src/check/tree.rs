//! Checks of directories and files: walks the displayed tree, each directory once.

use super::layout::Laid;
use crate::corruption::{Corruption, Place};
use crate::dir::{Entry, Listing};
use crate::disk::*;
use crate::inode::{RawInode, RawKind};
use crate::open::View;
use crate::record::Record;
use crate::sections::Section;
use crate::volume::Iso9660Volume;
use crate::zisofs::Compressed;
use packfs_core::{FileType, Result, range_at};
use packfs_format::check::{EntryPath, Hierarchy, Report, Tally};
use packfs_format::{Budget, InodeId, units::*};
use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

#[derive(Clone, Copy)]
struct Dir {
    start: u64,
    len: u64,
    extent: u32,
}

/// Identity of an inode: true for a directory, and its start.
type Key = (bool, u64);

struct Walk<'a, 'r> {
    volume: &'a Iso9660Volume,
    report: &'a mut Report<'r>,
    hierarchy: Hierarchy<Key, Dir>,
    laid: Vec<Laid>,
    /// Link count, and number of names met, of files with hard links.
    links: BTreeMap<u64, (u32, u32)>,
    /// Start of each compressed file whose pointers were checked.
    compressed: HashSet<u64>,
    directories: Budget,
    areas: Budget,
    pointers: Budget,
    odd_times: Tally,
    byte_orders: Tally,
    no_posix: Tally,
    behind_volume: Tally,
    link_counts: Tally,
    is_whole: bool,
}

/// Walks the tree. Returns the ranges of its structures.
pub(super) fn check(volume: &Iso9660Volume, report: &mut Report<'_>) -> Result<Vec<Laid>> {
    let mut walk = Walk {
        volume,
        report,
        hierarchy: Hierarchy::default(),
        laid: Vec::new(),
        links: BTreeMap::new(),
        compressed: HashSet::new(),
        directories: volume.budget(),
        areas: volume.budget(),
        pointers: volume.budget(),
        odd_times: Tally::default(),
        byte_orders: Tally::default(),
        no_posix: Tally::default(),
        behind_volume: Tally::default(),
        link_counts: Tally::default(),
        is_whole: true,
    };
    walk.root()?;
    for index in 0.. {
        let Some(dir) = walk.hierarchy.dir(index).filter(|_| !walk.report.is_full()) else { break };
        walk.directory(index, dir)?;
    }
    walk.finish();
    Ok(walk.laid)
}

impl Walk<'_, '_> {
    fn root(&mut self) -> Result<()> {
        let read = self.volume.raw_inode(InodeId(self.volume.geometry.root_at));
        let Some(raw) = self.refused("/", read)? else { return Ok(()) };
        self.inode(&self.hierarchy.path(0), &raw)?;
        let dir = self.dir(&raw.record);
        self.hierarchy.meet_root((true, dir.start), 1, dir);
        Ok(())
    }

    fn dir(&self, record: &Record) -> Dir {
        let start = record.data_at(self.volume.geometry.block_len);
        Dir { start, len: record.data_len(), extent: record.head.extent.get() }
    }

    /// Reports an error of the reader, and records that the walk is incomplete.
    fn refused<T>(&mut self, place: impl std::fmt::Display, result: Result<T>) -> Result<Option<T>> {
        let value = self.report.refused(place, result)?;
        self.is_whole &= value.is_some();
        Ok(value)
    }

    fn directory(&mut self, index: usize, dir: Dir) -> Result<()> {
        let path = self.hierarchy.path(index);
        let place = Place::at("directory", dir.start);
        let listing = self.directories.spend(dir.len, || Corruption::Overlap { place });
        let listing = listing.and_then(|()| Listing::new(self.volume, dir.start, dir.len));
        let Some(mut listing) = self.refused(&path, listing)? else { return Ok(()) };
        self.laid.push(Laid::new(range_at(dir.start, dir.len), true));
        let mut names = HashSet::new();
        for number in 0_u64.. {
            let record = listing.next_first();
            let Some(Some(record)) = self.refused(&path, record)? else { break };
            if !(record.head.extent.agrees() && record.head.data_len.agrees()) {
                self.byte_orders.add(|| record.place().to_string());
            }
            if number < 2 {
                self.self_or_parent(&path, index, number, dir, &record);
            }
            if record.is_self_or_parent() || record.has(FLAG_ASSOCIATED) {
                continue;
            }
            let rock_ridge = self.volume.rock_ridge(&record)?;
            let areas = rock_ridge.areas.iter().map(|area| area.1).sum();
            let spent = self.areas.spend(areas, || Corruption::Overlap { place: record.place() });
            if self.refused(&path, spent)?.is_none() {
                return Ok(());
            }
            if rock_ridge.is_relocated {
                continue;
            }
            let entry = self.volume.entry(record, rock_ridge);
            let Some(entry) = self.refused(&path, entry)? else { continue };
            if !names.insert(entry.name.clone()) {
                self.hierarchy.order_fault(index, &entry.name, &entry.name, self.report);
            }
            self.entry(index, entry)?;
            if self.report.is_full() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The first two records of a directory must be those of itself and its parent.
    fn self_or_parent(&mut self, path: &EntryPath<'_>, index: usize, number: u64, dir: Dir, record: &Record) {
        let (name, wanted, word) = match number {
            0 => (NAME_SELF, Some(dir.extent), "itself"),
            _ => (NAME_PARENT, self.hierarchy.parent(index).map(|parent| parent.extent), "its parent"),
        };
        if record.name() != name {
            let fault = format_args!("record {number} of the directory is not that of {word}");
            self.report.warn(path, fault);
            return;
        }
        // A relocated directory is displayed elsewhere.
        let moved = self.volume.rock_ridge(record).is_ok_and(|found| found.parent.is_some());
        let found = record.head.extent.get();
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found && !moved) {
            let fault = format_args!("its record of {word} leads to block {found}, not {wanted}");
            self.report.warn(path, fault);
        }
    }

    fn entry(&mut self, index: usize, entry: Entry) -> Result<()> {
        let Entry { record, rock_ridge, name, id, file_type } = entry;
        if let Some(posix) = rock_ridge.posix.filter(|posix| posix.links > 1)
            && file_type != FileType::Directory
        {
            let (_, names) = self.links.entry(id.0).or_insert((posix.links, 0));
            *names = names.plus(1);
        }
        let path = self.hierarchy.entry_path(index, &name);
        if rock_ridge.posix.is_some_and(|posix| posix.links == 0) {
            self.report.error(&path, "link count 0, but it has a name");
        }
        if rock_ridge.posix.is_none() && self.volume.geometry.view == View::RockRidge {
            self.no_posix.add(|| format!("\"{path}\""));
        }
        let raw = match rock_ridge.child {
            Some(_) => self.volume.raw_inode(id),
            None => self.volume.raw_inode_of(record, rock_ridge),
        };
        let Some(raw) = self.refused(&path, raw)? else { return Ok(()) };
        let dir = matches!(raw.kind, RawKind::Directory).then(|| self.dir(&raw.record));
        let key = dir.map_or((false, id.0), |dir| (true, dir.start));
        if file_type == FileType::Directory && dir.is_none() {
            let place = raw.record.place();
            self.refused(&path, Err::<(), _>(Corruption::NotADirectory { place }.into()))?;
            return Ok(());
        }
        self.inode(&path, &raw)?;
        if self.hierarchy.meet_again(key, index, &name, self.report).is_none() {
            let links = raw.rock_ridge.posix.map_or(1, |posix| posix.links);
            self.hierarchy.meet(key, links, dir, index, &name);
        }
        Ok(())
    }

    fn inode(&mut self, path: &EntryPath<'_>, raw: &RawInode) -> Result<()> {
        if let Some(fault) = raw.rock_ridge.fault {
            self.report.error(path, fault);
        }
        if let Some(offset) = raw.rock_ridge.odd_offset {
            self.odd_times.add(|| format!("{offset} of \"{path}\""));
        }
        let xattrs = crate::xattr::decode(&raw.rock_ridge.attributes, raw.record.place());
        self.report.refused(path, xattrs.map_err(packfs_core::Error::from))?;
        match &raw.kind {
            RawKind::File { sections, .. } => self.file(path, raw, sections)?,
            RawKind::Other if raw.file_type == FileType::Symlink => {
                let target = self.volume.link_target(InodeId(raw.record.at));
                self.report.refused(path, target)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn file(&mut self, path: &EntryPath<'_>, raw: &RawInode, sections: &[Section]) -> Result<()> {
        let checked = self.volume.check_file(raw).and_then(|()| self.volume.check_sections(sections));
        if self.refused(path, checked)?.is_none() {
            return Ok(());
        }
        for section in sections.iter().filter(|section| section.len > 0) {
            if section.range().end > self.volume.geometry.volume_end() {
                self.behind_volume.add(|| format!("\"{path}\""));
            }
            self.laid.push(Laid::new(section.range(), false));
        }
        let Some(marked) = raw.rock_ridge.zisofs else { return Ok(()) };
        let Some(first) = sections.first().filter(|first| self.compressed.insert(first.at)) else {
            return Ok(());
        };
        let place = raw.record.place();
        let volume = self.volume;
        let opened = Compressed::open(&volume.sectors, sections, marked, place);
        let Some(file) = self.refused(path, opened)? else { return Ok(()) };
        let overlap = || Corruption::Overlap { place: Place::at("zisofs header", first.at) };
        let room = self.pointers.spend(file.block_count().times(4), overlap);
        let walked = room.and_then(|()| file.each_block(0, |_, _| Ok(ControlFlow::Continue(()))));
        self.refused(path, walked)?;
        Ok(())
    }

    fn finish(&mut self) {
        if self.is_whole && !self.report.is_full() {
            for (at, (links, names)) in &self.links {
                if links != names {
                    self.link_counts.add(|| format!("{links} with {names} names, at {at:#x}"));
                }
            }
        }
        let report = &mut *self.report;
        self.odd_times.note(report, "times", "times with an invalid offset from GMT");
        self.link_counts.note(report, "link counts", "files whose names are not as many as they claim");
        self.no_posix.note(report, "owners", "files without owner and permissions");
        self.byte_orders.warn(report, "records", "the two byte orders of extents or lengths differ");
        self.behind_volume.warn(report, "records", "data is after the end of the volume");
    }
}

//! Check of every structure: headers and trees of groups, and everything reachable from the root.
//!
//! Invariant: ends for every image, as each inode is visited once.

use crate::check_hash::Hashes;
use crate::corruption::Corruption;
use crate::dir::is_dot;
use crate::dir_block::{RawEntry, file_type};
use crate::features;
use crate::group::{Header, TREES};
use crate::inode::{DiskInode, Fork, Form};
use crate::volume::XfsVolume;
use packfs_core::{FileType, Name, Result, range_at};
use packfs_format::check::{DataPlaces, Hierarchy, Report, Tally};
use packfs_format::{Check, ExtentFrom, Finding, InodeId, Volume, units::*};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

struct Walk<'a, 'r> {
    volume: &'a XfsVolume,
    report: &'a mut Report<'r>,
    hierarchy: Hierarchy<u64, u64>,
    /// Link count, number of subdirectories, and index of each directory.
    dir_links: HashMap<u64, (u32, u32, usize)>,
    dir_count: usize,
    data: DataPlaces,
    missing_realtime: Tally,
}

impl XfsVolume {
    fn check_groups(&self, report: &mut Report<'_>) -> Result<()> {
        for group in 0..self.super_block.ag_count {
            // A group after the end of the image is reported once.
            if report.is_full() || self.super_block.ag_block_at(group, 0) >= self.image.len() {
                break;
            }
            let place = format!("group {group}");
            let mut are_sound = true;
            for header in [Header::Free, Header::Inodes, Header::List] {
                are_sound &= report.refused(&place, self.group_header(group, header))?.is_some();
            }
            if are_sound {
                report.refused(&place, self.reserved_blocks(group))?;
            }
            if group > 0
                && let Some(fault) = self.copy_fault(group)?
            {
                report.warn(&place, format_args!("copy of the superblock: {fault}"));
            }
            for row in TREES.iter().filter(|_| are_sound) {
                let walked = self.each_record(group, row, &mut |_, _| Ok(ControlFlow::Continue(())));
                report.refused(&place, walked)?;
            }
        }
        Ok(())
    }
}

impl Check for XfsVolume {
    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new(crate::INFO.name, found);
        if let Some(sum) = self.super_block.checksum.filter(|sum| !sum.is_right()) {
            report.error("superblock", Corruption::SuperChecksum { sum });
        }
        if let Some(fault) = self.log_fault {
            report.error("log", fault);
        }
        for warning in &self.warnings {
            report.warn("image", warning);
        }
        self.check_groups(&mut report)?;
        let mut walk = Walk {
            volume: self,
            report: &mut report,
            hierarchy: Hierarchy::default(),
            dir_links: HashMap::new(),
            dir_count: 0,
            data: DataPlaces::default(),
            missing_realtime: Tally::default(),
        };
        let root = self.root().0;
        walk.hierarchy.meet_root(root, 1, root);
        walk.inode(0, b"", root, None)?;
        for index in 0.. {
            let Some(dir) = walk.hierarchy.dir(index).filter(|_| !walk.report.is_full()) else { break };
            walk.directory(index, dir)?;
        }
        walk.finish();
        Ok(())
    }
}

impl Walk<'_, '_> {
    fn directory(&mut self, index: usize, dir: u64) -> Result<()> {
        let volume = self.volume;
        let Some(inode) = self.report.refused(self.hierarchy.path(index), volume.dir(InodeId(dir)))? else {
            return Ok(());
        };
        let mut names: HashSet<Vec<u8>> = HashSet::new();
        let mut hashes = Hashes::default();
        let mut failed = None;
        let listed = volume.each_raw_entry(&inode, 0, &mut |raw| {
            hashes.add(raw.name, raw.at);
            if !names.insert(raw.name.to_vec()) {
                self.hierarchy.order_fault(index, raw.name, raw.name, self.report);
            }
            match self.entry(index, &inode, &raw) {
                Ok(()) if !self.report.is_full() => ControlFlow::Continue(()),
                Ok(()) => ControlFlow::Break(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        if self.report.refused(self.hierarchy.path(index), listed)?.is_none() {
            // Lost names may be directories.
            self.dir_links.remove(&dir);
            return Ok(());
        }
        if !self.report.is_full() {
            let checked = volume.check_hashes(&inode, hashes);
            self.report.refused(self.hierarchy.path(index), checked)?;
        }
        if inode.form != Form::Local && !self.report.is_full() {
            let is_missing = [&b"."[..], b".."].into_iter().find(|name| !names.contains(*name));
            if let Some(name) = is_missing.map(packfs_core::escaped) {
                let fault = format_args!("no entry \"{name}\"");
                self.report.error(self.hierarchy.path(index), fault);
            }
        }
        Ok(())
    }

    fn entry(&mut self, index: usize, dir: &DiskInode, raw: &RawEntry<'_>) -> Result<()> {
        if is_dot(raw.name) {
            let wanted = match raw.name {
                b"." => dir.ino,
                _ => self.hierarchy.parent(index).unwrap_or(dir.ino),
            };
            if raw.ino != wanted {
                let name = packfs_core::escaped(raw.name);
                let fault = format_args!("\"{name}\" leads to inode {}, {wanted} allowed", raw.ino);
                self.report.error(self.hierarchy.path(index), fault);
            }
            return Ok(());
        }
        let path = self.hierarchy.entry_path(index, raw.name);
        let (ino, at) = (dir.ino, raw.at);
        if let Err(fault) = Name::new(raw.name) {
            self.report.error(&path, Corruption::DirName { ino, at, fault });
            return Ok(());
        }
        if self.volume.super_block.inode_at(raw.ino).is_none() {
            self.report.error(&path, Corruption::DirTarget { ino, at, target: raw.ino });
            return Ok(());
        }
        if self.hierarchy.meet_again(raw.ino, index, raw.name, self.report).is_some() {
            if let Ok(inode) = self.volume.disk_inode(raw.ino) {
                self.claimed_type(self.hierarchy.entry_path(index, raw.name), raw.file_type, &inode);
            }
            return Ok(());
        }
        self.inode(index, raw.name, raw.ino, Some(raw.file_type))
    }

    /// Every name of an inode has to say what it is, not only the first.
    fn claimed_type(&mut self, path: impl std::fmt::Display, number: u8, inode: &DiskInode) {
        let fault = format_args!("type {number} of its entry is not that of inode {}", inode.ino);
        match file_type(number) {
            _ if !self.volume.super_block.has_ftype() => {}
            Some(found) if found == inode.file_type => {}
            // Readers refuse a type that differs from the inode's.
            Some(_) => self.report.error(path, fault),
            None => self.report.warn(path, fault),
        }
    }

    fn inode(&mut self, dir: usize, name: &[u8], ino: u64, claimed: Option<u8>) -> Result<()> {
        let path = self.hierarchy.entry_path(dir, name);
        let Some(inode) = self.report.refused(&path, self.volume.disk_inode(ino))? else { return Ok(()) };
        let is_dir = inode.file_type == FileType::Directory;
        if let Some(number) = claimed {
            self.hierarchy.meet(ino, inode.links, is_dir.then_some(ino), dir, name);
            self.claimed_type(&path, number, &inode);
            if is_dir && let Some(parent) = self.hierarchy.dir(dir) {
                let links = self.dir_links.entry(parent).or_insert((0, 0, dir));
                links.1 = links.1.plus(1);
            }
        }
        if is_dir {
            let index = self.dir_count;
            self.dir_count = index.plus(1);
            let links = self.dir_links.entry(ino).or_insert((0, 0, index));
            (links.0, links.2) = (inode.links, index);
        }
        if inode.has_time_fault {
            self.report.error(&path, "its time has a billion nanoseconds or more");
        }
        self.report.refused(&path, self.volume.attrs(InodeId(ino)))?;
        let walked = [Fork::Data, Fork::Attr].into_iter().try_for_each(|fork| self.fork(&inode, fork));
        self.report.refused(&path, walked)?;
        match inode.file_type {
            FileType::Symlink => drop(self.report.refused(&path, self.volume.read_link(InodeId(ino)))?),
            FileType::File => self.file(dir, name, &inode)?,
            _ => {}
        }
        Ok(())
    }

    /// Checks the extents of a fork, including those after the end of the file.
    fn fork(&mut self, inode: &DiskInode, fork: Fork) -> Result<()> {
        if inode.is_realtime && fork == Fork::Data && !self.volume.realtime.is_given() {
            return Ok(());
        }
        let mut count = 0_u64;
        self.volume.each_mapping(inode, fork, 0, &mut |_| {
            count = count.plus(1);
            Ok(ControlFlow::Continue(()))
        })?;
        let wanted = inode.extent_count(fork);
        let is_counted = inode.fork_form(fork) == Form::Tree && !self.volume.patches.has(inode.ino);
        if is_counted && count != wanted {
            Err(Corruption::ExtentCount { ino: inode.ino, found: count, wanted }.into())
        } else {
            Ok(())
        }
    }

    fn file(&mut self, dir: usize, name: &[u8], inode: &DiskInode) -> Result<()> {
        let path = self.hierarchy.entry_path(dir, name);
        if inode.is_realtime && !self.volume.realtime.is_given() {
            self.missing_realtime.add(|| path.to_string());
            return Ok(());
        }
        let data = &mut self.data;
        let extents = self.volume.extents(InodeId(inode.ino), 0..inode.size, &mut |extent| {
            if let ExtentFrom::Stored(at) = extent.from {
                data.add(range_at(at, extent.len));
            }
            ControlFlow::Continue(())
        });
        self.report.refused(&path, extents).map(drop)
    }

    fn finish(self) {
        if self.report.is_full() {
            return;
        }
        self.hierarchy.check_links(self.report);
        let mut dirs: Vec<_> = self.dir_links.into_values().collect();
        dirs.sort_unstable_by_key(|(_, _, index)| *index);
        for (links, subdirs, index) in dirs {
            let wanted = subdirs.plus(2);
            if links != wanted {
                let fault = format_args!("link count {links}, but it holds {subdirs} directories");
                self.report.error(self.hierarchy.path(index), fault);
            }
        }
        // Shared blocks may overlap.
        if self.volume.super_block.ro_compat & features::REFLINK == 0 {
            self.data.note_overlaps(self.report);
        }
        self.missing_realtime.note(
            self.report,
            "image",
            "the realtime device is not given; data not checked",
        );
    }
}

//! The hierarchy of the opened subvolume, and of those in it: entries in listings and for lookups,
//! references of inodes, attributes, and extents.
//!
//! Invariant: ends for every image, as each inode is visited once.

use super::taken;
use crate::corruption::Corruption;
use crate::disk::kind;
use crate::key::Key;
use crate::volume::{BtrfsVolume, Node, Place};
use packfs_core::{FileType, Result};
use packfs_format::check::{Hierarchy, Report};
use packfs_format::{DirCursor, DirEntry, Directories, InodeId, Volume};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Bound of the memory that finds duplicate names in a directory.
const NAMES_MAX: usize = 1 << 20;

struct Walk<'a, 'r> {
    volume: &'a BtrfsVolume,
    report: &'a mut Report<'r>,
    hierarchy: Hierarchy<InodeId, InodeId>,
}

pub(super) fn check(volume: &BtrfsVolume, report: &mut Report<'_>) -> Result<()> {
    let mut walk = Walk { volume, report, hierarchy: Hierarchy::default() };
    walk.hierarchy.meet_root(volume.root(), 1, volume.root());
    walk.inode(volume.root(), &"/".to_owned())?;
    for index in 0.. {
        let Some(dir) = walk.hierarchy.dir(index).filter(|_| !walk.report.is_full()) else { break };
        walk.directory(index, dir)?;
    }
    if !walk.report.is_full() {
        walk.hierarchy.check_links(walk.report);
    }
    Ok(())
}

impl Walk<'_, '_> {
    fn directory(&mut self, index: usize, dir: InodeId) -> Result<()> {
        let volume = self.volume;
        let mut names: HashSet<Vec<u8>> = HashSet::new();
        let mut outcome = Ok(());
        let listing = volume.read_dir(dir, DirCursor(0), &mut |entry, _| {
            if names.len() < NAMES_MAX && !names.insert(entry.name.clone()) {
                self.hierarchy.order_fault(index, &entry.name, &entry.name, self.report);
            }
            outcome = self.entry(index, dir, &entry);
            if outcome.is_err() || self.report.is_full() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        outcome?;
        taken(self.report, self.hierarchy.path(index), listing)?;
        Ok(())
    }

    fn entry(&mut self, index: usize, dir: InodeId, entry: &DirEntry) -> Result<()> {
        let path = self.hierarchy.entry_path(index, &entry.name).to_string();
        let found = taken(self.report, &path, self.volume.lookup(dir, &entry.name))?;
        match found {
            Some(None) => self.report.error(&path, "listed, but a lookup does not find it"),
            Some(Some(id)) if id != entry.id => {
                self.report.error(&path, "a lookup finds another inode than the listing");
            }
            _ => {}
        }
        self.reference(dir, entry, &path)?;
        if self.hierarchy.meet_again(entry.id, index, &entry.name, self.report).is_some() {
            if let Ok(inode) = self.volume.inode(entry.id) {
                self.claimed_type(&path, entry, inode.kind.file_type());
            }
            return Ok(());
        }
        let (links, file_type) = self.inode(entry.id, &path)?.unwrap_or((1, entry.file_type));
        self.claimed_type(&path, entry, file_type);
        let is_dir = file_type == FileType::Directory;
        self.hierarchy.meet(entry.id, links, is_dir.then_some(entry.id), index, &entry.name);
        Ok(())
    }

    /// Every name of an inode has to say what it is, not only the first.
    fn claimed_type(&mut self, path: &String, entry: &DirEntry, truth: FileType) {
        if truth != entry.file_type {
            let (claim, truth) = (entry.file_type.word(), truth.word());
            self.report.error(path, format_args!("its entry says {claim}, its inode {truth}"));
        }
    }

    /// Checks that the inode has a reference to the directory of the entry, if both are in one
    /// tree.
    fn reference(&mut self, dir: InodeId, entry: &DirEntry, path: &String) -> Result<()> {
        let places = (self.volume.place(dir)?, self.volume.place(entry.id)?);
        let (Place::Node(dir), Place::Node(node)) = places else { return Ok(()) };
        if dir.index != node.index {
            return Ok(());
        }
        let store = &self.volume.fs.store;
        let key = Key::new(node.inode, kind::INODE_REF, dir.inode);
        let found = node.tree.get(store, &key).and_then(|found| match found {
            Some(_) => Ok(true),
            // Many links: references by hash.
            None => {
                let next = node.tree.items_of(store, node.inode, kind::INODE_EXTREF, 0).next();
                Ok(next.transpose()?.is_some())
            }
        });
        if taken(self.report, path, found)? == Some(false) {
            self.report.error(path, format_args!("inode {} does not refer to its directory", node.inode));
        }
        Ok(())
    }

    fn inode(&mut self, id: InodeId, path: &String) -> Result<Option<(u32, FileType)>> {
        let Some(inode) = taken(self.report, path, self.volume.inode(id))? else { return Ok(None) };
        if let Some(doubt) = inode.doubt {
            self.report.error(path, doubt);
        }
        let Place::Node(node) = self.volume.place(id)? else { return Ok(Some((1, FileType::Directory))) };
        taken(self.report, path, self.volume.xattrs(id))?;
        match inode.kind.file_type() {
            FileType::Symlink => {
                taken(self.report, path, self.volume.read_link(id))?;
            }
            FileType::File => self.extents(&node, path)?,
            _ => {}
        }
        Ok(Some((inode.links, inode.kind.file_type())))
    }

    fn extents(&mut self, node: &Node, path: &String) -> Result<()> {
        let (volume, mut end) = (self.volume, 0);
        let report = &mut *self.report;
        let Some(inode) = taken(report, path, volume.inode_item(node))? else { return Ok(()) };
        let walked = volume.each_extent(node, 0, &mut |item, extent| {
            if extent.offset < end {
                report.error(path, format_args!("{} overlaps the extent before", item.place()));
            }
            end = extent.range().end;
            if let Ok(Some(at)) = volume.unsummed(&inode, &extent, &extent.range()) {
                report.error(path, Corruption::NoSum { place: item.place(), at });
            }
            if extent.at != 0 && volume.fs.store.chunks.of(extent.at).is_err() {
                report.error(path, format_args!("{} is in no chunk: {:#x}", item.place(), extent.at));
            }
            Ok(if report.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        taken(self.report, path, walked)?;
        Ok(())
    }
}

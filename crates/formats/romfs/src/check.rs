//! Check of every structure: checksums, listings, links, and positions of data.
//!
//! Invariant: ends for every image, as each header is visited once.

use crate::corruption::Corruption;
use crate::dir::is_dot;
use crate::disk::{Header, Kind};
use crate::volume::RomfsVolume;
use packfs_core::{FileType, Name, Result};
use packfs_format::check::{DataPlaces, Hierarchy, Report};
use packfs_format::{Check, Finding, InodeId, Volume};
use std::collections::HashSet;
use std::ops::ControlFlow;

struct Walk<'a, 'r> {
    volume: &'a RomfsVolume,
    report: &'a mut Report<'r>,
    hierarchy: Hierarchy<InodeId, InodeId>,
    seen: HashSet<u64>,
    data: DataPlaces,
}

impl Check for RomfsVolume {
    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new(crate::INFO.name, found);
        if self.sum != 0 {
            report.error("image", Corruption::Sum { found: self.sum });
        }
        let (hierarchy, seen) = (Hierarchy::default(), HashSet::new());
        let mut walk =
            Walk { volume: self, report: &mut report, hierarchy, seen, data: DataPlaces::default() };
        walk.hierarchy.meet_root(self.root(), 1, self.root());
        for index in 0.. {
            let Some(dir) = walk.hierarchy.dir(index).filter(|_| !walk.report.is_full()) else { break };
            walk.directory(index, dir)?;
        }
        // The root's own header is not in a listing if the list of the root starts elsewhere.
        let root = self.header(self.super_block.root_at)?;
        if !walk.seen.contains(&root.at)
            && let Some(fault) = root.sum_fault()
        {
            walk.report.error("/", fault);
        }
        walk.data.note_overlaps(&mut report);
        Ok(())
    }
}

impl Walk<'_, '_> {
    fn directory(&mut self, index: usize, dir: InodeId) -> Result<()> {
        let volume = self.volume;
        let mut names: HashSet<Vec<u8>> = HashSet::new();
        let listing = volume.dir(dir).and_then(|header| {
            volume.each_header(header.target(), &mut |header| {
                if !self.seen.insert(header.at) && header.at != volume.super_block.root_at {
                    self.report.error(self.hierarchy.path(index), "the listing leads into another");
                    return Ok(ControlFlow::Break(()));
                }
                if !names.insert(header.name.clone()) {
                    self.hierarchy.order_fault(index, &header.name, &header.name, self.report);
                }
                self.entry(index, dir, &header)?;
                Ok(if self.report.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })
        });
        self.report.refused(self.hierarchy.path(index), listing)?;
        Ok(())
    }

    fn entry(&mut self, index: usize, dir: InodeId, header: &Header) -> Result<()> {
        let path = self.hierarchy.entry_path(index, &header.name);
        if let Some(fault) = header.sum_fault() {
            self.report.error(&path, fault);
        }
        let Some((id, file_type)) = self.report.refused(&path, self.volume.resolve(header))? else {
            return Ok(());
        };
        if is_dot(&header.name) {
            let is_right = self.report.refused(&path, self.volume.dot(dir, header, id, file_type))?.is_some();
            let parent = self.hierarchy.parent(index).unwrap_or(dir);
            if is_right && header.name == b".." && id != parent {
                let fault = format_args!("leads to {:#x}, {:#x} wanted", id.0, parent.0);
                self.report.error(&path, fault);
            }
            return Ok(());
        }
        if let Err(fault) = Name::new(&header.name) {
            self.report.error(&path, Corruption::Name { at: header.at, fault });
        }
        if self.hierarchy.meet_again(id, index, &header.name, self.report).is_some() {
            return Ok(());
        }
        // Links are not counted: Linux shows 1 for each file.
        let (links, is_dir) = (2, file_type == FileType::Directory);
        self.hierarchy.meet(id, links, is_dir.then_some(id), index, &header.name);
        let path = self.hierarchy.entry_path(index, &header.name);
        if file_type == FileType::Symlink {
            self.report.refused(&path, self.volume.read_link(id))?;
        }
        if let Some(own) = self.report.refused(&path, self.volume.header(id.0))?
            && own.kind == Kind::Other(FileType::File)
            && own.len > 0
        {
            self.data.add(own.data());
        }
        Ok(())
    }
}

//! Checks of directories, inodes and block pointers: walks all of them, each inode once.

use crate::data::StoredAs;
use crate::disk::*;
use crate::inode::RawInode;
use crate::volume::CramfsVolume;
use crate::walk::{Budget, Contents, has_blocks};
use packfs_core::{FileType, Result};
use packfs_format::check::{DataPlaces, EntryPath, Hierarchy, Report, Tally};
use packfs_format::{InodeId, Volume};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Longest target of a symbolic link that kernels read.
const LINK_LEN_OF_KERNELS: u32 = 4095;

struct Walk<'a, 'r> {
    volume: &'a CramfsVolume,
    report: &'a mut Report<'r>,
    hierarchy: Hierarchy<InodeId, RawInode>,
    /// Bytes of listings that may still be read.
    listings: Budget,
    pointers: Budget,
    contents: Contents,
    /// Ranges of the blocks of files and targets, each once.
    data: DataPlaces,
    /// True if the walk met everything, so that what it did not meet is unused.
    whole: bool,
    unflagged_holes: Tally,
    lost_pages: Tally,
}

/// Walks everything.
pub(super) fn check(volume: &CramfsVolume, report: &mut Report<'_>) -> Result<()> {
    let mut walk = Walk {
        volume,
        report,
        hierarchy: Hierarchy::default(),
        listings: Budget::of(volume),
        pointers: Budget::of(volume),
        contents: Contents::default(),
        data: DataPlaces::default(),
        whole: true,
        unflagged_holes: Tally::default(),
        lost_pages: Tally::default(),
    };
    walk.root()?;
    for index in 0.. {
        let Some(dir) = walk.hierarchy.dir(index).filter(|_| !walk.report.is_full()) else { break };
        walk.directory(index, &dir)?;
    }
    walk.finish();
    Ok(())
}

impl Walk<'_, '_> {
    fn root(&mut self) -> Result<()> {
        let id = self.volume.root();
        let read = self.volume.raw_inode(id);
        if let Some(root) = self.refused("/", read)? {
            self.hierarchy.meet_root(id, 1, root);
        }
        Ok(())
    }

    /// Tells what was refused, and remembers that not all could be walked.
    fn refused<T>(&mut self, place: impl std::fmt::Display, result: Result<T>) -> Result<Option<T>> {
        let value = self.report.refused(place, result)?;
        self.whole &= value.is_some();
        Ok(value)
    }

    fn directory(&mut self, index: usize, dir: &RawInode) -> Result<()> {
        let room = self.listings.spend(dir.place, dir.raw.size.into());
        if self.listing_refused(index, room)?.is_none() {
            return Ok(());
        }
        let is_sorted = self.volume.geometry.flag(CRAMFS_FLAG_SORTED_DIRS);
        let mut listing = self.volume.listing(dir, 0);
        let mut before: Vec<u8> = Vec::new();
        let mut names: HashSet<Vec<u8>> = HashSet::new();
        while !self.report.is_full() {
            let next = listing.next();
            let Some(Some((id, _))) = self.listing_refused(index, next)? else { break };
            let name = &listing.name;
            let is_twice = if is_sorted { *name == before } else { !names.insert(name.clone()) };
            if is_twice {
                self.hierarchy.order_fault(index, name, name, self.report);
            } else if is_sorted && *name < before {
                self.hierarchy.order_fault(index, &before, name, self.report);
            }
            before.clone_from(name);
            self.entry(index, id, name)?;
        }
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

    /// Checks an entry's inode, if it is new.
    fn entry(&mut self, dir: usize, id: InodeId, name: &[u8]) -> Result<()> {
        if self.hierarchy.meet_again(id, dir, name, self.report).is_some() {
            return Ok(());
        }
        let path = self.hierarchy.entry_path(dir, name);
        let read = self.volume.raw_inode(id);
        let Some(inode) = self.refused(&path, read)? else { return Ok(()) };
        let own = (inode.file_type == FileType::Directory).then_some(inode);
        self.hierarchy.meet(id, 1, own, dir, name);
        if has_blocks(&inode) && self.contents.is_new(&inode) {
            self.blocks(&path, &inode)?;
        }
        Ok(())
    }

    fn blocks(&mut self, path: &EntryPath<'_>, inode: &RawInode) -> Result<()> {
        let geometry = &self.volume.geometry;
        let room = self.pointers.spend(inode.place, inode.pointers_len(geometry));
        if self.refused(path, room)?.is_none() {
            return Ok(());
        }
        let (mut has_holes, mut last) = (false, None);
        let data = &mut self.data;
        let walked = self.volume.each_block(inode, 0..inode.block_count(geometry), &mut |block| {
            has_holes |= block.stored_as == StoredAs::Hole;
            if block.len > 0 {
                data.add(block.stored());
            }
            last = Some(block);
            ControlFlow::Continue(())
        });
        self.refused(path, walked)?;
        if has_holes && !geometry.flag(CRAMFS_FLAG_HOLES) {
            self.unflagged_holes.add(|| format!("\"{path}\""));
        }
        let is_lost = |block: &crate::data::Block| {
            block.is_direct && block.stored_as == StoredAs::Plain && block.decoded_len == geometry.block_len
        };
        if last.as_ref().is_some_and(is_lost) {
            self.lost_pages.add(|| format!("\"{path}\""));
        }
        if inode.file_type == FileType::Symlink {
            let target = self.volume.target_of(inode);
            self.refused(path, target)?;
            if inode.raw.size > LINK_LEN_OF_KERNELS {
                let len = inode.raw.size;
                let fault =
                    format_args!("link target of {len} bytes, kernels read {LINK_LEN_OF_KERNELS} at most");
                self.report.warn(path, fault);
            }
        }
        Ok(())
    }

    fn finish(&mut self) {
        self.whole &= !self.report.is_full();
        std::mem::take(&mut self.data).note_overlaps(self.report);
        if let Some(text) = self.unflagged_holes.one_line("holes in an image without the flag for them") {
            self.report.note("superblock", text);
        }
        let what =
            "files whose last page Linux reads as zeros, because it is uncompressed and has a direct pointer";
        if let Some(text) = self.lost_pages.one_line(what) {
            self.report.warn("block pointers", text);
        }
        let geometry = &self.volume.geometry;
        let (files, met) = (u64::from(geometry.super_block.files), self.hierarchy.inode_count());
        if self.whole && geometry.is_version_2() && files != met {
            self.report.note("superblock", format_args!("counts {files} names, but there are {met}"));
        }
    }
}

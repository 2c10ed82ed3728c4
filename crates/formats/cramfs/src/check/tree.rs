//! Checks of directories, inodes, and block pointers: walks all of them, each inode once.

use crate::corruption::Corruption;
use crate::data::StoredAs;
use crate::disk::*;
use crate::inode::RawInode;
use crate::volume::CramfsVolume;
use crate::walk::{Contents, has_blocks};
use packfs_core::{FileType, Result};
use packfs_format::check::{DataPlaces, EntryPath, Hierarchy, Report, Tally};
use packfs_format::{Budget, InodeId, Volume};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Longest target of a symbolic link that kernels read.
const LINK_LEN_OF_KERNELS: u32 = 4095;

struct Walk<'a, 'r> {
    volume: &'a CramfsVolume,
    report: &'a mut Report<'r>,
    hierarchy: Hierarchy<InodeId, RawInode>,
    /// Remaining budget of listing bytes.
    listings: Budget,
    pointers: Budget,
    /// Pointers of targets, which may be those of files, too.
    target_pointers: Budget,
    contents: Contents,
    targets: Contents,
    /// Ranges of the blocks of files and targets, each once.
    data: DataPlaces,
    /// True if the whole tree was walked, so that the rest is unused.
    whole: bool,
    unflagged_holes: Tally,
    lost_pages: Tally,
}

pub(super) fn check(volume: &CramfsVolume, report: &mut Report<'_>) -> Result<()> {
    let mut walk = Walk {
        volume,
        report,
        hierarchy: Hierarchy::default(),
        listings: volume.budget(),
        pointers: volume.budget(),
        target_pointers: volume.budget(),
        contents: Contents::default(),
        targets: Contents::default(),
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

    /// Reports an error of the reader, and records that the walk is incomplete.
    fn refused<T>(&mut self, place: impl std::fmt::Display, result: Result<T>) -> Result<Option<T>> {
        let value = self.report.refused(place, result)?;
        self.whole &= value.is_some();
        Ok(value)
    }

    fn directory(&mut self, index: usize, dir: &RawInode) -> Result<()> {
        let room = self.listings.spend(dir.raw.size.into(), || Corruption::Overlap { place: dir.place });
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
        if inode.file_type == FileType::Symlink {
            self.target(&path, &inode)?;
        }
        Ok(())
    }

    /// Checks a link's target, whose blocks may have been met as those of a file.
    fn target(&mut self, path: &EntryPath<'_>, inode: &RawInode) -> Result<()> {
        if self.targets.is_new(inode) {
            let overlap = || Corruption::Overlap { place: inode.place };
            let room = self.target_pointers.spend(inode.pointers_len(&self.volume.geometry), overlap);
            let target = room.and_then(|()| self.volume.target_of(inode));
            self.refused(path, target)?;
        }
        if inode.raw.size > LINK_LEN_OF_KERNELS {
            let len = inode.raw.size;
            let fault =
                format_args!("link target of {len} bytes, kernels read {LINK_LEN_OF_KERNELS} at most");
            self.report.warn(path, fault);
        }
        Ok(())
    }

    fn blocks(&mut self, path: &EntryPath<'_>, inode: &RawInode) -> Result<()> {
        let geometry = &self.volume.geometry;
        let overlap = || Corruption::Overlap { place: inode.place };
        let room = self.pointers.spend(inode.pointers_len(geometry), overlap);
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
        Ok(())
    }

    fn finish(&mut self) {
        self.whole &= !self.report.is_full();
        std::mem::take(&mut self.data).note_overlaps(self.report);
        self.unflagged_holes.note(self.report, "superblock", "holes in an image without the flag for them");
        self.lost_pages.warn(
            self.report,
            "block pointers",
            "files whose last page Linux reads as zeros, because it is uncompressed and has a direct pointer",
        );
        let geometry = &self.volume.geometry;
        let files = u64::from(geometry.super_block.files);
        let met = self.hierarchy.inode_count();
        if self.whole && geometry.is_version_2() && files != met {
            self.report.note("superblock", format_args!("counts {files} names, but there are {met}"));
        }
    }
}

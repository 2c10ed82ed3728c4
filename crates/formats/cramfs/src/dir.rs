//! Directories: listings read entry by entry.
//!
//! An entry is an inode and its name. Invariant: a listing never yields more than its size permits,
//! every name has passed [`Name::new`], and every step makes progress. The check and the tree
//! builder verify order and duplicates.

use crate::corruption::{Corruption, Place};
use crate::disk::*;
use crate::inode::{RawInode, not_a};
use crate::volume::CramfsVolume;
use packfs_core::{FileType, Name, Result};
use packfs_format::{DirCursor, DirEntry, Directories, InodeId, units::*};
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// Limit of the bytes of a listing in one read.
const PART_LEN: u32 = 16 << 10;

pub(crate) struct Listing<'a> {
    volume: &'a CramfsVolume,
    start: u64,
    len: u32,
    at: u32,
    /// Buffered bytes of the listing, of which `taken` are consumed.
    part: Vec<u8>,
    taken: usize,
    /// Name of the last entry, without its padding.
    pub(crate) name: Vec<u8>,
}

impl Listing<'_> {
    /// Reads the next entry: id and fields of its inode. The name is in [`Listing::name`].
    pub(crate) fn next(&mut self) -> Result<Option<(InodeId, CramfsInode)>> {
        if self.at >= self.len {
            return Ok(None);
        }
        let place = self.place();
        let order = self.volume.geometry.order;
        let inode = CramfsInode::parse(order, &array_at(self.take(INODE_LEN)?, 0));
        let padded = self.take(inode.name_len)?;
        let mut name = padded.to_vec();
        name.truncate(padded.iter().rev().skip_while(|byte| **byte == 0).count());
        Name::new(&name).map_err(|fault| Corruption::EntryName { place, fault })?;
        self.name = name;
        Ok(Some((InodeId(place.at), inode)))
    }

    fn place(&self) -> Place {
        Place { what: "directory entry", at: self.start.plus(self.at.into()) }
    }

    /// Returns the next bytes of the listing.
    fn take(&mut self, wanted: u32) -> Result<&[u8]> {
        let left = self.len.minus(self.at);
        if wanted > left {
            return Err(Corruption::ListingEnd { place: self.place(), left, wanted }.into());
        }
        if self.part.len().minus(self.taken) < wanted as usize {
            self.part.resize(left.min(PART_LEN) as usize, 0);
            self.taken = 0;
            let at = self.place().at;
            self.volume.image.read_exact_at(at, &mut self.part)?;
        }
        self.at = self.at.plus(wanted);
        let start = self.taken;
        self.taken = start.plus(wanted as usize);
        Ok(self.part.within(start..self.taken))
    }
}

impl CramfsVolume {
    pub(crate) fn listing(&self, dir: &RawInode, at: u32) -> Listing<'_> {
        let (start, len) = (u64::from(dir.raw.offset), dir.raw.size);
        Listing { volume: self, start, len, at, part: Vec::new(), taken: 0, name: Vec::new() }
    }

    fn raw_dir(&self, id: InodeId) -> Result<RawInode> {
        let inode = self.raw_inode(id)?;
        match inode.file_type {
            FileType::Directory => Ok(inode),
            _ => Err(not_a("directory", &inode)),
        }
    }
}

impl Directories for CramfsVolume {
    /// The order is only used if a flag announces it, and once it was verified.
    fn lookup(&self, id: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        if !self.sorted_dirs.contains(id) {
            return self.sorted_dirs.find_among_all(id, name, |visit| {
                self.read_dir(id, DirCursor(0), &mut |entry, _| visit(&entry.name, entry.id))
            });
        }
        let dir = self.raw_dir(id)?;
        let mut listing = self.listing(&dir, 0);
        while let Some((id, _)) = listing.next()? {
            match listing.name.as_slice().cmp(name) {
                Ordering::Equal => return Ok(Some(id)),
                Ordering::Greater => return Ok(None),
                Ordering::Less => {}
            }
        }
        Ok(None)
    }

    /// A cursor is an offset in the listing.
    fn read_dir(
        &self,
        id: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        let dir = self.raw_dir(id)?;
        let from = u32::try_from(from.0).unwrap_or(u32::MAX).min(dir.raw.size);
        let mut listing = self.listing(&dir, from);
        while let Some((id, inode)) = listing.next()? {
            let place = Place { what: "inode", at: id.0 };
            let file_type = FileType::from_mode_bits(inode.mode.into());
            let file_type = file_type.ok_or(Corruption::InodeType { place, found: inode.mode })?;
            let entry = DirEntry { name: std::mem::take(&mut listing.name), id, file_type };
            if visit(entry, DirCursor(listing.at.into())).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn is_sorted(&self) -> bool {
        self.geometry.flag(CRAMFS_FLAG_SORTED_DIRS)
    }
}

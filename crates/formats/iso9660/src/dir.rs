//! Directories: records read one by one, and those of one file combined.
//!
//! Owns the choice of entries: records of the directory itself and its parent, associated files,
//! and directories relocated from elsewhere are not. Invariant: every name has passed
//! [`Name::new`], and every step makes progress.

use crate::corruption::{Corruption, Place};
use crate::disk::*;
use crate::inode::{RawInode, RawKind, not_a};
use crate::names;
use crate::open::View;
use crate::record::Record;
use crate::rock_ridge::RockRidge;
use crate::volume::Iso9660Volume;
use packfs_core::{FileType, Name, Result, range_at};
use packfs_format::{DirCursor, DirEntry, Directories, InodeId, units::*};
use std::ops::ControlFlow;

pub(crate) struct Listing<'a> {
    volume: &'a Iso9660Volume,
    pub(crate) start: u64,
    end: u64,
    /// Offset of the next record.
    at: u64,
}

pub(crate) struct Entry {
    pub(crate) record: Record,
    pub(crate) rock_ridge: RockRidge,
    pub(crate) name: Vec<u8>,
    pub(crate) id: InodeId,
    pub(crate) file_type: FileType,
}

impl<'a> Listing<'a> {
    pub(crate) fn new(volume: &'a Iso9660Volume, start: u64, len: u64) -> Result<Self> {
        volume.sectors.check_range(Place::at("directory", start), len)?;
        Ok(Listing { volume, start, end: range_at(start, len).end, at: start })
    }

    /// Returns the records that follow one, in any directory.
    pub(crate) fn behind(volume: &'a Iso9660Volume, record: &Record) -> Self {
        Listing { volume, start: record.at, end: volume.geometry.image_len, at: record.end() }
    }

    pub(crate) fn next_record(&mut self) -> Result<Option<Record>> {
        while self.at < self.end {
            match Record::read(&self.volume.sectors, self.at, self.end)? {
                Some(record) => {
                    self.at = record.end();
                    return Ok(Some(record));
                }
                // The rest of the sector is empty.
                None => self.at = self.at.plus(1).next_multiple_of(SECTOR_LEN),
            }
        }
        Ok(None)
    }

    /// Returns the next record that starts a file or directory; skips further sections of files.
    pub(crate) fn next_first(&mut self) -> Result<Option<Record>> {
        let Some(first) = self.next_record()? else { return Ok(None) };
        let mut goes_on = first.has(FLAG_MULTI_EXTENT);
        while goes_on {
            let before = self.at;
            match self.next_record()? {
                Some(next) if next.name() == first.name() => goes_on = next.has(FLAG_MULTI_EXTENT),
                _ => {
                    self.at = before;
                    break;
                }
            }
        }
        Ok(Some(first))
    }

    pub(crate) fn next_entry(&mut self) -> Result<Option<Entry>> {
        loop {
            let Some(record) = self.next_first()? else { return Ok(None) };
            if record.is_self_or_parent() || record.has(FLAG_ASSOCIATED) {
                continue;
            }
            let rock_ridge = self.volume.rock_ridge(&record)?;
            if rock_ridge.is_relocated {
                continue;
            }
            return self.volume.entry(record, rock_ridge).map(Some);
        }
    }

    /// Position after the last entry.
    fn cursor(&self) -> DirCursor {
        DirCursor(self.at.minus(self.start))
    }
}

impl Iso9660Volume {
    pub(crate) fn entry(&self, record: Record, rock_ridge: RockRidge) -> Result<Entry> {
        let place = record.place();
        let name = match (&rock_ridge.name, self.geometry.view) {
            (Some(name), _) => name.clone(),
            (None, View::Joliet) => names::joliet(record.name()),
            (None, View::RockRidge | View::Plain) => names::plain(record.name()),
        };
        Name::new(&name).map_err(|fault| Corruption::EntryName { place, fault })?;
        let by_mode = rock_ridge.posix.and_then(|posix| FileType::from_mode_bits(posix.mode));
        let (id, file_type) = match rock_ridge.child {
            // The directory's record of itself provides its id.
            Some(block) => (InodeId(block_at(block.into(), self.geometry.block_len)), FileType::Directory),
            None if record.has(FLAG_DIRECTORY) => (InodeId(record.at), FileType::Directory),
            None => {
                let file_type = by_mode.unwrap_or(FileType::File);
                (InodeId(self.hard_links.first(&record, &rock_ridge, file_type)), file_type)
            }
        };
        Ok(Entry { record, rock_ridge, name, id, file_type })
    }

    pub(crate) fn listing(&self, id: InodeId) -> Result<(RawInode, Listing<'_>)> {
        let raw = self.raw_inode(id)?;
        let RawKind::Directory = raw.kind else { return Err(not_a("directory", &raw)) };
        let start = raw.record.data_at(self.geometry.block_len);
        let listing = Listing::new(self, start, raw.record.data_len())?;
        Ok((raw, listing))
    }
}

impl Directories for Iso9660Volume {
    /// Records are sorted by hidden names, so all are read.
    fn lookup(&self, id: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        let (_, mut listing) = self.listing(id)?;
        while let Some(entry) = listing.next_entry()? {
            if entry.name == name {
                return Ok(Some(entry.id));
            }
        }
        Ok(None)
    }

    fn read_dir(
        &self,
        id: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        let (_, mut listing) = self.listing(id)?;
        listing.at = end_of(listing.start, from.0);
        while let Some(Entry { name, id, file_type, .. }) = listing.next_entry()? {
            if visit(DirEntry { name, id, file_type }, listing.cursor()).is_break() {
                break;
            }
        }
        Ok(())
    }
}

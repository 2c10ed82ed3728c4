//! Files of all types, identified by their record, parsed and checked.
//!
//! A file's id is the offset of its record, or of the first one found of several hard links. The
//! root and relocated directories are identified by their records of themselves.

use crate::corruption::Corruption;
use crate::dates;
use crate::disk::*;
use crate::open::View;
use crate::record::Record;
use crate::rock_ridge::RockRidge;
use crate::sections::Section;
use crate::volume::Iso9660Volume;
use packfs_core::{Error, FileType, Meta, Owner, Result};
use packfs_format::{Inode, InodeId, InodeKind};

/// Default permissions, as in Linux.
const MODE_DEFAULT: u16 = 0o555;
/// A record is at an even offset, and none is shorter than 32 bytes: its offset divided by that is
/// its inode number in Linux.
const NUMBER_SHIFT: u32 = 5;

#[derive(Clone, Debug)]
pub(crate) enum RawKind {
    Directory,
    File { len: u64, sections: Vec<Section> },
    Other,
}

#[derive(Clone, Debug)]
pub(crate) struct RawInode {
    pub(crate) record: Record,
    pub(crate) rock_ridge: RockRidge,
    pub(crate) file_type: FileType,
    pub(crate) kind: RawKind,
}

/// Returns the error of a request for another type.
pub(crate) fn not_a(what: &str, raw: &RawInode) -> Error {
    Error::failed(format!("{} is a {}, not a {what}", raw.record.place(), raw.file_type.word()))
}

impl Iso9660Volume {
    /// Reads the system use entries of a record; empty unless Rock Ridge is displayed.
    pub(crate) fn rock_ridge(&self, record: &Record) -> Result<RockRidge> {
        let geometry = &self.geometry;
        if geometry.view != View::RockRidge {
            return Ok(RockRidge::default());
        }
        let skip = if record.at == geometry.root_at { geometry.root_skip } else { geometry.skip };
        RockRidge::read(&self.sectors, record, skip, geometry.block_len)
    }

    pub(crate) fn raw_inode(&self, id: InodeId) -> Result<RawInode> {
        let record = Record::read(&self.sectors, id.0, self.geometry.image_len)?;
        let Some(record) = record else {
            let place = crate::corruption::Place::at(crate::record::RECORD, id.0);
            return Err(Corruption::RecordLen { place, found: 0, max: 255 }.into());
        };
        let rock_ridge = self.rock_ridge(&record)?;
        self.raw_inode_of(record, rock_ridge)
    }

    pub(crate) fn raw_inode_of(&self, record: Record, rock_ridge: RockRidge) -> Result<RawInode> {
        let by_flags = if record.has(FLAG_DIRECTORY) { FileType::Directory } else { FileType::File };
        let by_mode = rock_ridge.posix.and_then(|posix| FileType::from_mode_bits(posix.mode));
        let file_type = by_mode.unwrap_or(by_flags);
        if (file_type == FileType::Directory) != (by_flags == FileType::Directory) {
            let place = record.place();
            return Err(Corruption::Type { place, found: file_type, wanted: by_flags }.into());
        }
        let kind = match file_type {
            FileType::Directory => RawKind::Directory,
            FileType::File => {
                let sections = self.sections(&record)?;
                let len = rock_ridge.zisofs.map_or_else(|| sections_len(&sections), |marked| marked.len);
                RawKind::File { len, sections }
            }
            _ => RawKind::Other,
        };
        Ok(RawInode { record, rock_ridge, file_type, kind })
    }

    /// See [`packfs_format::Volume::inode`].
    pub(crate) fn plain_inode(&self, raw: &RawInode) -> Result<Inode> {
        let RawInode { record, rock_ridge, .. } = raw;
        let posix = rock_ridge.posix;
        let device = rock_ridge.device.unwrap_or_default();
        let kind = match (raw.file_type, &raw.kind) {
            (_, RawKind::File { len, .. }) => InodeKind::File { len: *len },
            (FileType::Symlink, _) => InodeKind::Symlink,
            (FileType::BlockDevice, _) => InodeKind::BlockDevice(device),
            (FileType::CharDevice, _) => InodeKind::CharDevice(device),
            (FileType::Fifo, _) => InodeKind::Fifo,
            (FileType::Socket, _) => InodeKind::Socket,
            _ => InodeKind::Directory,
        };
        let mtime = match (rock_ridge.modified, &raw.kind) {
            (Some(modified), _) => modified,
            (None, RawKind::Directory) => dates::of_record(self.own_time(record)?),
            (None, _) => dates::of_record(record.head.time),
        };
        let meta = Meta {
            mode: posix.map_or(MODE_DEFAULT, |posix| (posix.mode & 0o7777) as u16),
            owner: posix.map_or(Owner::default(), |posix| Owner { uid: posix.uid, gid: posix.gid }),
            mtime,
        };
        let number = posix.and_then(|posix| posix.inode).filter(|&inode| inode != 0);
        Ok(Inode {
            kind,
            meta,
            links: posix.map_or(1, |posix| posix.links),
            number: number.map_or(record.at >> NUMBER_SHIFT, u64::from),
            doubt: None,
            has_xattrs: self.has_attributes(raw),
            sectors: stored_len(raw).div_ceil(512),
        })
    }

    /// Returns the time in a directory's record of itself, as Linux does, or else that of the
    /// record in its parent.
    fn own_time(&self, record: &Record) -> Result<RecordTime> {
        let start = record.data_at(self.geometry.block_len);
        match Record::read(&self.sectors, start, self.geometry.image_len) {
            Ok(Some(own)) if own.name() == NAME_SELF => Ok(own.head.time),
            Err(error) if error.kind() != packfs_core::ErrorKind::Corrupt => Err(error),
            _ => Ok(record.head.time),
        }
    }

    /// See [`packfs_format::Volume::read_link`]. A truncated target, as one writer creates from
    /// long ones, is returned as it is; the check reports it.
    pub(crate) fn link_target(&self, id: InodeId) -> Result<Vec<u8>> {
        let raw = self.raw_inode(id)?;
        if raw.file_type != FileType::Symlink {
            return Err(not_a("symlink", &raw));
        }
        let place = raw.record.place();
        let target = raw.rock_ridge.target.map(|target| target.bytes).unwrap_or_default();
        let fault = match &*target {
            [] => "a symlink without a target",
            target if target.contains(&0) => "link target with a NUL byte",
            _ => return Ok(target),
        };
        Err(Corruption::Target { place, fault }.into())
    }
}

fn sections_len(sections: &[Section]) -> u64 {
    sections.iter().map(|section| section.len).sum()
}

/// Stored length of a file or directory, before decompression, by which Linux's `isofs_read_inode`
/// counts blocks of any type.
fn stored_len(raw: &RawInode) -> u64 {
    match &raw.kind {
        RawKind::File { sections, .. } => sections_len(sections),
        RawKind::Directory | RawKind::Other => raw.record.data_len(),
    }
}

//! Inodes, identified by their position in a listing, parsed and checked.
//!
//! An inode has no number: its id is its offset in the image, and every name has a separate inode.

use crate::corruption::{Corruption, LINK_LEN_MAX, Place};
use crate::disk::*;
use crate::open::Geometry;
use crate::volume::CramfsVolume;
use packfs_core::{DeviceNumber, Error, FileType, Meta, Owner, Result, Timestamp, range_at};
use packfs_format::{Inode, InodeId, InodeKind, Volume, units::*};
use std::ops::Range;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RawInode {
    pub(crate) raw: CramfsInode,
    pub(crate) file_type: FileType,
    pub(crate) place: Place,
}

impl RawInode {
    pub(crate) fn parse(geometry: &Geometry, at: u64, bytes: &[u8; INODE_LEN as usize]) -> Result<RawInode> {
        let raw = CramfsInode::parse(geometry.order, bytes);
        let place = Place { what: "inode", at };
        let file_type = FileType::from_mode_bits(raw.mode.into());
        let file_type = file_type.ok_or(Corruption::InodeType { place, found: raw.mode })?;
        let inode = RawInode { raw, file_type, place };
        inode.check(geometry)?;
        Ok(inode)
    }

    fn check(&self, geometry: &Geometry) -> Result<()> {
        let (place, size) = (self.place, self.raw.size);
        let (min, end) = (geometry.start(), geometry.end);
        let start = u64::from(self.raw.offset);
        let lies_outside = |len| len > 0 && (start < min || range_at(start, len).end > end);
        match self.file_type {
            FileType::Directory if lies_outside(size.into()) => {
                Err(Corruption::ListingRange { place, start, len: size.into(), min, end }.into())
            }
            FileType::Symlink if size == 0 || size > LINK_LEN_MAX => {
                Err(Corruption::LinkLength { place, found: size }.into())
            }
            FileType::File | FileType::Symlink if lies_outside(self.pointers_len(geometry)) => {
                let len = self.pointers_len(geometry);
                Err(Corruption::PointerRange { place, start, len, min, end }.into())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn block_count(&self, geometry: &Geometry) -> u64 {
        self.raw.size.div_ceil(geometry.block_len).into()
    }

    pub(crate) fn pointers_len(&self, geometry: &Geometry) -> u64 {
        self.block_count(geometry).times(POINTER_LEN.into())
    }

    pub(crate) fn pointers(&self, geometry: &Geometry) -> Range<u64> {
        range_at(self.raw.offset.into(), self.pointers_len(geometry))
    }

    pub(crate) fn pointer_at(&self, block: u64) -> u64 {
        u64::from(self.raw.offset).plus(block.times(POINTER_LEN.into()))
    }

    /// Returns the blocks that Linux's `get_cramfs_inode` counts: the length of everything with
    /// data, including directories and targets.
    fn sectors(&self) -> u64 {
        match self.file_type {
            FileType::Directory | FileType::File | FileType::Symlink => {
                u64::from(self.raw.size).div_ceil(512)
            }
            FileType::BlockDevice | FileType::CharDevice | FileType::Fifo | FileType::Socket => 0,
        }
    }

    /// Converts the inode to the type of the frame.
    pub(crate) fn plain(&self) -> Inode {
        let CramfsInode { mode, uid, size, gid, .. } = self.raw;
        // Like the kernel's `old_decode_dev`.
        let device = DeviceNumber { major: size >> 8 & 0xff, minor: size & 0xff };
        let kind = match self.file_type {
            FileType::Directory => InodeKind::Directory,
            FileType::File => InodeKind::File { len: size.into() },
            FileType::Symlink => InodeKind::Symlink,
            FileType::BlockDevice => InodeKind::BlockDevice(device),
            FileType::CharDevice => InodeKind::CharDevice(device),
            FileType::Fifo => InodeKind::Fifo,
            FileType::Socket => InodeKind::Socket,
        };
        let owner = Owner { uid: uid.into(), gid: gid.into() };
        Inode {
            kind,
            meta: Meta { mode: mode & 0o7777, owner, mtime: Timestamp::default() },
            // Not stored; Linux shows 1 for everything, including directories.
            links: 1,
            number: self.place.at,
            doubt: None,
            has_xattrs: false,
            sectors: self.sectors(),
        }
    }
}

impl CramfsVolume {
    pub(crate) fn raw_inode(&self, id: InodeId) -> Result<RawInode> {
        let geometry = &self.geometry;
        let min = geometry.start();
        let end = left(geometry.end, INODE_LEN.into());
        if id != self.root() && !(min..=end).contains(&id.0) {
            let place = Place { what: "inode", at: id.0 };
            return Err(Corruption::InodePlace { place, min, end }.into());
        }
        let mut bytes = [0; INODE_LEN as usize];
        self.image.read_exact_at(id.0, &mut bytes)?;
        RawInode::parse(geometry, id.0, &bytes)
    }
}

/// Returns the error of a request for another type.
pub(crate) fn not_a(wanted: &str, inode: &RawInode) -> Error {
    Error::failed(format!("{} is a {}, not a {wanted}", inode.place, inode.file_type.word()))
}

//! Inodes, from a nid to checked fields.
//!
//! Owns both forms of the inode. Invariant: layout, type, link count, and length of a [`RawInode`]
//! are checked, and it is wholly within the image; `data` checks everything that its layout refers
//! to.

use crate::corruption::{Allowed, Place};
use crate::disk::*;
use crate::figures::low_bits;
use crate::raw::{Layout, RawInode};
use crate::reader::Reader;
use packfs_core::{DeviceNumber, Error, FileType, Meta, Owner, Result, Timestamp, usize_of};
use packfs_format::{Inode, InodeId, InodeKind, filled, units::*};
use std::mem::size_of;
use zerocopy::IntoBytes;

/// Longest target of a symbolic link; Linux creates none above 4,095 bytes, but reads them.
pub(crate) const LINK_LEN_MAX: u64 = 65_535;

struct Fields {
    format: u16,
    xattr_icount: u16,
    mode: u16,
    /// The upper 16 bits of a block number, if stored.
    upper: Option<u16>,
    size: u64,
    nlink: u32,
    owner: (u32, u32),
    mtime: Timestamp,
    ino: u32,
    i_u: u32,
}

impl Fields {
    fn of_extended(raw: &InodeExtended) -> Self {
        Fields {
            format: raw.i_format.get(),
            xattr_icount: raw.i_xattr_icount.get(),
            mode: raw.i_mode.get(),
            upper: Some(raw.i_nb.get()),
            size: raw.i_size.get(),
            nlink: raw.i_nlink.get(),
            owner: (raw.i_uid.get(), raw.i_gid.get()),
            mtime: Timestamp { seconds: raw.i_mtime.get() as i64, nanos: raw.i_mtime_nsec.get() },
            ino: raw.i_ino.get(),
            i_u: raw.i_u.get(),
        }
    }
}

impl Reader {
    pub(crate) fn inode_at(&self, nid: u64) -> Option<u64> {
        let slot = nid & EROFS_DIRENT_NID_MASK;
        let offset = slot.checked_mul(1 << ISLOTBITS)?;
        let base = match nid >> EROFS_DIRENT_NID_METABOX_BIT {
            0 => self.geometry.meta_at,
            _ => self.metabox.as_ref()?.start,
        };
        let at = base.checked_add(offset)?;
        let end = match nid >> EROFS_DIRENT_NID_METABOX_BIT {
            0 => self.geometry.image_len,
            _ => self.space_end(),
        };
        (left(end, at) >= size_of::<InodeCompact>() as u64).then_some(at)
    }

    pub(crate) fn raw_inode(&self, nid: u64) -> Result<RawInode> {
        let Some(at) = self.inode_at(nid) else {
            let place = Place::at("inode area", self.geometry.meta_at);
            let fault = match nid >> EROFS_DIRENT_NID_METABOX_BIT {
                0 => "a node number after the end of the image",
                _ if self.metabox.is_none() => "a node number in the metabox, but there is none",
                _ => "a node number after the end of the metabox",
            };
            return Err(place.fault(fault));
        };
        let place = self.place("inode", at);
        let raw: InodeCompact = self.read_struct(at, place)?;
        let format = raw.i_format.get();
        if format & !EROFS_I_ALL != 0 {
            let what = format!("{place}: format {format:#x}, {EROFS_I_ALL:#x} are known");
            return Err(Error::unsupported("erofs image", what));
        }
        let extended = format >> EROFS_I_VERSION_BIT & 1 == EROFS_INODE_LAYOUT_EXTENDED;
        let fields = if extended {
            Fields::of_extended(&filled(|bytes| {
                let (compact, rest) = bytes.split_at_mut(size_of::<InodeCompact>());
                compact.copy_from_slice(raw.as_bytes());
                self.read_metadata(at.plus(compact.len() as u64), rest, place)
            })?)
        } else {
            self.compact_fields(&raw)
        };
        self.checked_inode(nid, at, place, extended, &fields)
    }

    fn compact_fields(&self, raw: &InodeCompact) -> Fields {
        let (format, mode) = (raw.i_format.get(), raw.i_mode.get());
        let is_dir = FileType::from_mode_bits(u32::from(mode)) == Some(FileType::Directory);
        let nlink_1 = !is_dir && format >> EROFS_I_NLINK_1_BIT & 1 != 0;
        let (nlink, upper) =
            if nlink_1 { (1, Some(raw.i_nb.get())) } else { (u32::from(raw.i_nb.get()), None) };
        let seconds = self.geometry.epoch.wrapping_add(i64::from(raw.i_mtime.get()));
        Fields {
            format,
            xattr_icount: raw.i_xattr_icount.get(),
            mode,
            upper,
            size: u64::from(raw.i_size.get()),
            nlink,
            owner: (u32::from(raw.i_uid.get()), u32::from(raw.i_gid.get())),
            mtime: Timestamp { seconds, nanos: self.geometry.fixed_nsec },
            ino: raw.i_ino.get(),
            i_u: raw.i_u.get(),
        }
    }

    fn checked_inode(
        &self,
        nid: u64,
        at: u64,
        place: Place,
        extended: bool,
        fields: &Fields,
    ) -> Result<RawInode> {
        let number = fields.format >> EROFS_I_DATALAYOUT_BIT & EROFS_I_DATALAYOUT_MASK;
        let layout = Layout::from_number(number).ok_or_else(|| {
            Error::unsupported("erofs image", format!("{place}: data layout {number}, 0 to 4 are known"))
        })?;
        let file_type = FileType::from_mode_bits(u32::from(fields.mode))
            .ok_or_else(|| place.fault("a mode that is of no file type"))?;
        if fields.mtime.nanos >= 1_000_000_000 {
            return Err(place.figure("nanoseconds", fields.mtime.nanos, Allowed::AtMost(999_999_999)));
        }
        if fields.size > i64::MAX as u64 {
            return Err(place.figure("length", fields.size, Allowed::AtMost(i64::MAX as u64)));
        }
        if file_type == FileType::Symlink && !(1..=LINK_LEN_MAX).contains(&fields.size) {
            return Err(place.figure("link length", fields.size, Allowed::Between(1, LINK_LEN_MAX)));
        }
        let (bits, upper) = match fields.upper {
            Some(upper) => (48, u64::from(upper) << 32),
            None => (32, 0),
        };
        let block = u64::from(fields.i_u) | upper;
        let is_hole = layout == Layout::FlatPlain && block == low_bits(bits);
        Ok(RawInode {
            nid,
            place,
            at,
            extended,
            layout,
            file_type,
            mode: fields.mode,
            size: fields.size,
            nlink: fields.nlink,
            uid: fields.owner.0,
            gid: fields.owner.1,
            mtime: fields.mtime,
            ino: fields.ino,
            i_u: fields.i_u,
            block_word: block,
            start_block: (!is_hole).then_some(block),
            dot_omitted: file_type == FileType::Directory
                && fields.format >> EROFS_I_DOT_OMITTED_BIT & 1 != 0,
            xattr_len: xattr_ibody_len(fields.xattr_icount),
        })
    }

    pub(crate) fn plain_inode(&self, raw: &RawInode) -> Inode {
        let device = DeviceNumber::decode(raw.i_u);
        let kind = match raw.file_type {
            FileType::Directory => InodeKind::Directory,
            FileType::File => InodeKind::File { len: raw.size },
            FileType::Symlink => InodeKind::Symlink,
            FileType::BlockDevice => InodeKind::BlockDevice(device),
            FileType::CharDevice => InodeKind::CharDevice(device),
            FileType::Fifo => InodeKind::Fifo,
            FileType::Socket => InodeKind::Socket,
        };
        let owner = Owner { uid: raw.uid, gid: raw.gid };
        let meta = Meta { mode: raw.mode & 0o7777, owner, mtime: raw.mtime };
        let has_xattrs = raw.xattr_len > 0;
        Inode {
            kind,
            meta,
            links: raw.nlink,
            number: u64::from(raw.ino),
            doubt: None,
            has_xattrs,
            sectors: self.sectors_of(raw),
        }
    }

    /// Returns the 512-byte blocks that Linux reports (`erofs_read_inode`): those recorded in a
    /// compressed inode, else those that its length fills, including holes, inline tails, and
    /// directories.
    fn sectors_of(&self, raw: &RawInode) -> u64 {
        let block_len = self.geometry.block_len();
        let blocks = if raw.is_compressed() { raw.block_word } else { raw.size.div_ceil(block_len) };
        blocks.times(block_len / 512)
    }

    pub(crate) fn link_target(&self, id: InodeId) -> Result<Vec<u8>> {
        let raw = self.raw_inode(id.0)?;
        if raw.file_type != FileType::Symlink {
            return Err(not_a("symlink", raw.file_type));
        }
        let mut target = vec![0; usize_of(raw.size)];
        self.read_content(&raw, 0, &mut target)?;
        if target.contains(&0) {
            return Err(raw.place.fault("a link target with a NUL byte"));
        }
        Ok(target)
    }
}

pub(crate) fn not_a(wanted: &str, found: FileType) -> Error {
    Error::failed(format!("is a {}, not a {wanted}", found.word()))
}

//! Inodes: the fourteen on-disk types of 4.0, unified as [`RawInode`].

use crate::v4::corruption::{Corruption, LINK_LEN_MAX};
use crate::v4::disk::*;
use crate::v4::volume::SquashfsVolume;
use crate::{
    Cursor, MetadataFault, Place, Position, RawDir, RawFile, RawInode, RawKind, number_doubt, type_of_number,
};
use packfs_core::{DeviceNumber, FileType, Meta, Owner, Result, Timestamp, u32_of};
use packfs_format::{Inode, units::*};

impl SquashfsVolume {
    /// See [`crate::Records::parse_inode`]. The cursor is then after the inode's fixed part (for
    /// extended links: after its target and attribute index).
    pub(crate) fn inode_at(&self, cursor: &mut Cursor<'_>) -> Result<RawInode> {
        let place = cursor.place();
        let base: InodeBase = cursor.read()?;
        if base.inode_number.get() == 0 {
            return Err(MetadataFault::InodeNumberZero { place }.into());
        }
        let inode_type = base.inode_type.get();
        let (basic, extended) = match inode_type.checked_sub(EXTENDED_TYPES) {
            Some(basic @ 1..) => (basic, true),
            _ => (inode_type, false),
        };
        let Some(file_type) = type_of_number(basic) else {
            return Err(Corruption::InodeType { place, found: inode_type }.into());
        };
        let body = Body::read(cursor, file_type, extended, place)?;
        Ok(RawInode {
            mode: base.mode.get(),
            uid: base.uid.get(),
            gid: base.guid.get(),
            mtime: Some(base.mtime.get()),
            number: base.inode_number.get(),
            nlink: body.nlink,
            xattr: body.xattr,
            file_type,
            kind: body.kind,
            place,
            tail: body.tail.unwrap_or_else(|| cursor.position()),
        })
    }

    fn owner(&self, index: u16, place: Place) -> Result<u32> {
        let missing = || Corruption::IdIndex { place, found: index, count: u32_of(self.ids.len() as u64) };
        Ok(*self.ids.get(usize::from(index)).ok_or_else(missing)?)
    }

    pub(crate) fn frame_inode(&self, raw: &RawInode) -> Result<Inode> {
        let owner = Owner { uid: self.owner(raw.uid, raw.place)?, gid: self.owner(raw.gid, raw.place)? };
        let mtime = Timestamp::from_seconds(raw.mtime.unwrap_or_default().into());
        // As Linux (`squashfs_read_inode`): holes do not count, and compression is ignored.
        let sectors = match raw.kind {
            RawKind::File(file) => left(file.file_size, file.sparse).div_ceil(512),
            _ => 0,
        };
        Ok(Inode {
            kind: raw.inode_kind(),
            meta: Meta { mode: raw.mode & 0o7777, owner, mtime },
            links: raw.nlink,
            number: u64::from(raw.number),
            doubt: number_doubt(self, raw),
            has_xattrs: raw.xattr != SQUASHFS_INVALID_XATTR && self.geometry.xattrs.is_some(),
            sectors,
        })
    }
}

struct Body {
    kind: RawKind,
    nlink: u32,
    xattr: u32,
    /// Position after the body, if it differs from the cursor's.
    tail: Option<Position>,
}

impl Body {
    fn read(cursor: &mut Cursor<'_>, file_type: FileType, extended: bool, place: Place) -> Result<Body> {
        match file_type {
            FileType::Directory => Body::dir(cursor, extended),
            FileType::File => Body::file(cursor, extended),
            FileType::Symlink => Body::symlink(cursor, extended, place),
            FileType::BlockDevice | FileType::CharDevice => Body::device(cursor, extended),
            FileType::Fifo | FileType::Socket => Body::ipc(cursor, extended),
        }
    }

    fn new(kind: RawKind, nlink: u32, xattr: u32) -> Result<Body> {
        Ok(Body { kind, nlink, xattr, tail: None })
    }

    fn dir(cursor: &mut Cursor<'_>, extended: bool) -> Result<Body> {
        if extended {
            let raw: LDirInode = cursor.read()?;
            let dir = RawDir {
                start_block: raw.start_block.get(),
                offset: raw.offset.get(),
                file_size: raw.file_size.get(),
                parent_inode: raw.parent_inode.get(),
                i_count: raw.i_count.get(),
            };
            return Body::new(RawKind::Dir(dir), raw.nlink.get(), raw.xattr.get());
        }
        let raw: DirInode = cursor.read()?;
        let dir = RawDir {
            start_block: raw.start_block.get(),
            offset: raw.offset.get(),
            file_size: u32::from(raw.file_size.get()),
            parent_inode: raw.parent_inode.get(),
            i_count: 0,
        };
        Body::new(RawKind::Dir(dir), raw.nlink.get(), SQUASHFS_INVALID_XATTR)
    }

    fn file(cursor: &mut Cursor<'_>, extended: bool) -> Result<Body> {
        if extended {
            let raw: LRegInode = cursor.read()?;
            let file = RawFile {
                start_block: raw.start_block.get(),
                file_size: raw.file_size.get(),
                sparse: raw.sparse.get(),
                fragment: raw.fragment.get(),
                offset: raw.offset.get(),
            };
            return Body::new(RawKind::File(file), raw.nlink.get(), raw.xattr.get());
        }
        let raw: RegInode = cursor.read()?;
        let file = RawFile {
            start_block: u64::from(raw.start_block.get()),
            file_size: u64::from(raw.file_size.get()),
            sparse: 0,
            fragment: raw.fragment.get(),
            offset: raw.offset.get(),
        };
        Body::new(RawKind::File(file), 1, SQUASHFS_INVALID_XATTR)
    }

    fn symlink(cursor: &mut Cursor<'_>, extended: bool, place: Place) -> Result<Body> {
        let raw: SymlinkInode = cursor.read()?;
        let len = raw.symlink_size.get();
        if len == 0 || len > LINK_LEN_MAX {
            return Err(Corruption::LinkLength { place, found: len }.into());
        }
        let tail = Some(cursor.position());
        let mut xattr = SQUASHFS_INVALID_XATTR;
        if extended {
            cursor.skip(u64::from(len))?;
            xattr = cursor.read::<zerocopy::little_endian::U32>()?.get();
        }
        Ok(Body { kind: RawKind::Symlink(len), nlink: raw.nlink.get(), xattr, tail })
    }

    fn device(cursor: &mut Cursor<'_>, extended: bool) -> Result<Body> {
        if extended {
            let raw: LDevInode = cursor.read()?;
            return Body::new(
                RawKind::Device(DeviceNumber::decode(raw.rdev.get())),
                raw.nlink.get(),
                raw.xattr.get(),
            );
        }
        let raw: DevInode = cursor.read()?;
        Body::new(
            RawKind::Device(DeviceNumber::decode(raw.rdev.get())),
            raw.nlink.get(),
            SQUASHFS_INVALID_XATTR,
        )
    }

    fn ipc(cursor: &mut Cursor<'_>, extended: bool) -> Result<Body> {
        if extended {
            let raw: LIpcInode = cursor.read()?;
            return Body::new(RawKind::Ipc, raw.nlink.get(), raw.xattr.get());
        }
        let raw: IpcInode = cursor.read()?;
        Body::new(RawKind::Ipc, raw.nlink.get(), SQUASHFS_INVALID_XATTR)
    }
}

//! Inodes: the on-disk types of versions 1 to 3, unified as [`RawInode`].
//!
//! Before 3.0, hard links have separate inodes, so they cannot be distinguished from copies.

use crate::legacy::bits::ReadFields;
use crate::legacy::corruption::Corruption;
use crate::legacy::disk::*;
use crate::legacy::volume::LegacyVolume;
use crate::{
    Cursor, MetadataFault, Place, RawDir, RawFile, RawInode, RawKind, SQUASHFS_BLKDEV_TYPE,
    SQUASHFS_CHRDEV_TYPE, SQUASHFS_DIR_TYPE, SQUASHFS_FIFO_TYPE, SQUASHFS_INVALID_FRAG, SQUASHFS_REG_TYPE,
    SQUASHFS_SOCKET_TYPE, SQUASHFS_SYMLINK_TYPE, number_doubt, type_of_number,
};
use packfs_core::{DeviceNumber, FileType, Meta, Owner, Result, Timestamp, u32_of};
use packfs_format::{Inode, InodeId, units::*};

/// Extended attributes exist since 4.0.
const NO_XATTRS: u32 = u32::MAX;

struct Base {
    inode_type: u16,
    mode: u16,
    uid: u16,
    gid: u16,
    mtime: Option<u32>,
    number: u32,
}

impl Base {
    fn read(cursor: &mut Cursor<'_>, version: Version) -> Result<Base> {
        if version.major() == 1 {
            let mut fields = cursor.fields::<3>()?;
            let [inode_type, mode, uid, gid] = [4, 12, 4, 4].map(|width| fields.half(width));
            return Ok(Base { inode_type, mode, uid, gid, mtime: None, number: 0 });
        }
        if !version.has_numbers() {
            let mut fields = cursor.fields::<4>()?;
            let [inode_type, mode, uid, gid] = [4, 12, 8, 8].map(|width| fields.half(width));
            return Ok(Base { inode_type, mode, uid, gid, mtime: None, number: 0 });
        }
        let mut fields = cursor.fields::<12>()?;
        let [inode_type, mode, uid, gid] = [4, 12, 8, 8].map(|width| fields.half(width));
        Ok(Base { inode_type, mode, uid, gid, mtime: Some(fields.word(32)), number: fields.word(32) })
    }

    /// Splits the type of version 1 into type and bank of users: 15 types are three times the first
    /// five, and types without room for a bank have a separate byte.
    fn take_bank(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let bank = if let Some(index) = self.inode_type.checked_sub(1) {
            self.inode_type = (index % SQUASHFS_TYPES).plus(1);
            index / SQUASHFS_TYPES
        } else {
            let mut fields = cursor.fields::<1>()?;
            self.inode_type = fields.half(4);
            fields.half(4)
        };
        self.uid = self.uid.plus(bank.times(16));
        Ok(())
    }
}

impl LegacyVolume {
    /// See [`crate::Records::parse_inode`]. The cursor is then after the inode's fixed part.
    pub(crate) fn inode_at(&self, cursor: &mut Cursor<'_>) -> Result<RawInode> {
        let version = self.geometry.version();
        let place = cursor.place();
        let mut base = Base::read(cursor, version)?;
        if version.has_numbers() && base.number == 0 {
            return Err(MetadataFault::InodeNumberZero { place }.into());
        }
        let found = base.inode_type;
        let is_ipc_byte = version.major() == 1 && found == 0;
        if version.major() == 1 {
            base.take_bank(cursor)?;
        }
        let is_ipc = matches!(base.inode_type, SQUASHFS_FIFO_TYPE | SQUASHFS_SOCKET_TYPE);
        let known = file_type(base.inode_type).filter(|_| version.major() != 1 || is_ipc == is_ipc_byte);
        let Some(file_type) = known else {
            return Err(Corruption::InodeType { place, found: base.inode_type }.into());
        };
        let body = Body::read(cursor, version, base.inode_type, place)?;
        Ok(RawInode {
            mode: base.mode,
            uid: base.uid,
            gid: base.gid,
            mtime: base.mtime.or(body.mtime),
            number: base.number,
            nlink: body.nlink,
            xattr: NO_XATTRS,
            file_type,
            kind: body.kind,
            place,
            tail: cursor.position(),
        })
    }

    fn owner(&self, raw: &RawInode) -> Result<Owner> {
        let of = |table: &'static str, ids: &[u32], index: u16| {
            let missing = Corruption::IdIndex {
                place: raw.place,
                table,
                found: index,
                count: u32_of(ids.len() as u64),
            };
            ids.get(usize::from(index)).copied().ok_or(missing)
        };
        let uid = of("users", &self.uids, raw.uid)?;
        let same = raw.gid == self.geometry.version().gid_of_uid();
        Ok(Owner { uid, gid: if same { uid } else { of("groups", &self.gids, raw.gid)? } })
    }

    pub(crate) fn frame_inode(&self, id: InodeId, raw: &RawInode) -> Result<Inode> {
        let owner = self.owner(raw)?;
        // Inodes without a time get that of the image.
        let mtime = raw.mtime.unwrap_or(self.geometry.super_block.mkfs_time);
        let has_numbers = self.geometry.version().has_numbers();
        let kind = raw.inode_kind();
        Ok(Inode {
            kind,
            meta: Meta { mode: raw.mode, owner, mtime: Timestamp::from_seconds(i64::from(mtime)) },
            links: raw.nlink,
            number: if has_numbers { u64::from(raw.number) } else { id.0 },
            doubt: number_doubt(self, raw),
            has_xattrs: false,
            sectors: kind.sectors_filled(),
        })
    }
}

/// Returns the type; 8 and 9 are the extended forms of 1 and 2.
fn file_type(inode_type: u16) -> Option<FileType> {
    match inode_type {
        SQUASHFS_LDIR_TYPE => Some(FileType::Directory),
        SQUASHFS_LREG_TYPE => Some(FileType::File),
        basic => type_of_number(basic),
    }
}

struct Body {
    kind: RawKind,
    nlink: u32,
    mtime: Option<u32>,
}

impl Body {
    fn read(cursor: &mut Cursor<'_>, version: Version, inode_type: u16, place: Place) -> Result<Body> {
        let nlink = if !version.has_numbers() || inode_type == SQUASHFS_REG_TYPE {
            1
        } else {
            cursor.fields::<4>()?.word(32)
        };
        let (kind, mtime) = match (inode_type, version.major()) {
            (SQUASHFS_DIR_TYPE | SQUASHFS_LDIR_TYPE, 3) => {
                (Body::numbered_dir(cursor, inode_type == SQUASHFS_LDIR_TYPE)?, None)
            }
            (SQUASHFS_DIR_TYPE, _) => Body::dir(cursor)?,
            (SQUASHFS_LDIR_TYPE, 2) => Body::long_dir(cursor)?,
            (SQUASHFS_REG_TYPE, 1) => Body::unfragmented_file(cursor)?,
            (SQUASHFS_REG_TYPE, 2) => Body::short_file(cursor)?,
            (SQUASHFS_REG_TYPE, _) => (Body::file(cursor)?, None),
            (SQUASHFS_LREG_TYPE, 3) => (Body::long_file(cursor)?, None),
            (SQUASHFS_SYMLINK_TYPE, _) => {
                let len = cursor.fields::<2>()?.half(16);
                if len == 0 {
                    return Err(Corruption::LinkLength { place }.into());
                }
                (RawKind::Symlink(u32::from(len)), None)
            }
            (SQUASHFS_BLKDEV_TYPE | SQUASHFS_CHRDEV_TYPE, _) => {
                let rdev = u32::from(cursor.fields::<2>()?.half(16));
                (RawKind::Device(DeviceNumber { major: rdev >> 8, minor: rdev & 0xff }), None)
            }
            (SQUASHFS_FIFO_TYPE | SQUASHFS_SOCKET_TYPE, _) => (RawKind::Ipc, None),
            (found, _) => return Err(Corruption::InodeType { place, found }.into()),
        };
        Ok(Body { kind, nlink, mtime })
    }

    fn dir(cursor: &mut Cursor<'_>) -> Result<(RawKind, Option<u32>)> {
        let mut fields = cursor.fields::<11>()?;
        let file_size = fields.word(19);
        let offset = fields.half(13);
        let mtime = fields.word(32);
        let dir = RawDir { start_block: fields.word(24), offset, file_size, parent_inode: 0, i_count: 0 };
        Ok((RawKind::Dir(dir), Some(mtime)))
    }

    /// Reads a directory of version 2.1 with an index or a long listing.
    fn long_dir(cursor: &mut Cursor<'_>) -> Result<(RawKind, Option<u32>)> {
        let mut fields = cursor.fields::<14>()?;
        let file_size = fields.word(27);
        let offset = fields.half(13);
        let mtime = fields.word(32);
        let (start_block, i_count) = (fields.word(24), fields.half(16));
        Ok((RawKind::Dir(RawDir { start_block, offset, file_size, parent_inode: 0, i_count }), Some(mtime)))
    }

    fn numbered_dir(cursor: &mut Cursor<'_>, extended: bool) -> Result<RawKind> {
        if extended {
            let mut fields = cursor.fields::<15>()?;
            let file_size = fields.word(27);
            let offset = fields.half(13);
            let start_block = fields.word(32);
            let (i_count, parent_inode) = (fields.half(16), fields.word(32));
            return Ok(RawKind::Dir(RawDir { start_block, offset, file_size, parent_inode, i_count }));
        }
        let mut fields = cursor.fields::<12>()?;
        let file_size = fields.word(19);
        let offset = fields.half(13);
        let start_block = fields.word(32);
        let parent_inode = fields.word(32);
        Ok(RawKind::Dir(RawDir { start_block, offset, file_size, parent_inode, i_count: 0 }))
    }

    fn unfragmented_file(cursor: &mut Cursor<'_>) -> Result<(RawKind, Option<u32>)> {
        let mut fields = cursor.fields::<12>()?;
        let [mtime, start_block, file_size] = [(); 3].map(|()| fields.word(32));
        let file = RawFile {
            start_block: u64::from(start_block),
            file_size: u64::from(file_size),
            sparse: 0,
            fragment: SQUASHFS_INVALID_FRAG,
            offset: 0,
        };
        Ok((RawKind::File(file), Some(mtime)))
    }

    /// Reads a file of version 2.
    fn short_file(cursor: &mut Cursor<'_>) -> Result<(RawKind, Option<u32>)> {
        let mut fields = cursor.fields::<20>()?;
        let [mtime, start_block, fragment, offset, file_size] = [(); 5].map(|()| fields.word(32));
        let (start_block, file_size) = (u64::from(start_block), u64::from(file_size));
        Ok((RawKind::File(RawFile { start_block, file_size, sparse: 0, fragment, offset }), Some(mtime)))
    }

    /// Reads a file of version 3.
    fn file(cursor: &mut Cursor<'_>) -> Result<RawKind> {
        let mut fields = cursor.fields::<20>()?;
        let start_block = fields.take(64);
        let [fragment, offset, file_size] = [(); 3].map(|()| fields.word(32));
        Ok(RawKind::File(RawFile {
            start_block,
            file_size: u64::from(file_size),
            sparse: 0,
            fragment,
            offset,
        }))
    }

    /// Reads a file of version 3 with hard links or at least 4 GiB, after its link count.
    fn long_file(cursor: &mut Cursor<'_>) -> Result<RawKind> {
        let mut fields = cursor.fields::<24>()?;
        let start_block = fields.take(64);
        let fragment = fields.word(32);
        let offset = fields.word(32);
        Ok(RawKind::File(RawFile { start_block, file_size: fields.take(64), sparse: 0, fragment, offset }))
    }
}

//! Inodes: found by reference, parsed, checked.
//!
//! Owns the fourteen on-disk types and their unification into one [`RawInode`]. An inode's identity is its position in
//! the inode table; the number it carries identifies nothing, since hostile images repeat numbers.

use crate::corruption::{Corruption, LINK_LEN_MAX, Place};
use crate::disk::*;
use crate::metadata::{Cursor, Position};
use crate::volume::SquashfsVolume;
use packfs_core::{DeviceNumber, Error, FileType, Inode, InodeId, InodeKind, Meta, Owner, Result, Timestamp};

/// A directory's own figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawDir {
    /// Where its listing starts.
    pub(crate) start_block: u32,
    pub(crate) offset: u16,
    /// Length of its listing plus 3.
    pub(crate) file_size: u32,
    pub(crate) parent_inode: u32,
    /// Entries of its index, which follow the inode.
    pub(crate) i_count: u16,
}

/// A file's own figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawFile {
    /// Where its first block starts.
    pub(crate) start_block: u64,
    pub(crate) file_size: u64,
    pub(crate) sparse: u64,
    pub(crate) fragment: u32,
    /// Start of its tail within the fragment.
    pub(crate) offset: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum RawKind {
    Dir(RawDir),
    File(RawFile),
    /// Length of the target, which follows the inode.
    Symlink(u32),
    Device(u32),
    Ipc,
}

/// An inode of any type, as stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawInode {
    pub(crate) base: InodeBase,
    pub(crate) file_type: FileType,
    pub(crate) kind: RawKind,
    pub(crate) nlink: u32,
    /// Index into the table of sets, or [`SQUASHFS_INVALID_XATTR`].
    pub(crate) xattr: u32,
    /// Where it is, for messages.
    pub(crate) place: Place,
    /// What follows its fixed part: size words, index, target.
    pub(crate) tail: Position,
}

impl SquashfsVolume {
    /// Reads an inode.
    pub(crate) fn raw_inode(&self, id: InodeId) -> Result<RawInode> {
        let InodeRef { block, offset } = InodeRef::from_raw(id.0);
        let mut cursor = self.metadata.cursor(self.geometry.inodes, "inode", block, u32::from(offset))?;
        self.parse_inode(&mut cursor)
    }

    /// Reads the inode at the cursor, which then stands behind its fixed part (for extended links: behind its target
    /// and attribute index).
    pub(crate) fn parse_inode(&self, cursor: &mut Cursor<'_>) -> Result<RawInode> {
        let place = cursor.place();
        let base: InodeBase = cursor.read()?;
        if base.inode_number.get() == 0 {
            return Err(Corruption::InodeNumberZero { place }.into());
        }
        let inode_type = base.inode_type.get();
        let Some(file_type) = file_type(inode_type) else {
            return Err(Corruption::InodeType { place, found: inode_type }.into());
        };
        let body = Body::read(cursor, file_type, inode_type > SQUASHFS_SOCKET_TYPE, place)?;
        let inode = RawInode {
            base,
            file_type,
            kind: body.kind,
            nlink: body.nlink,
            xattr: body.xattr,
            place,
            tail: body.tail.unwrap_or_else(|| cursor.position()),
        };
        self.check_inode(&inode)?;
        Ok(inode)
    }

    fn check_inode(&self, inode: &RawInode) -> Result<()> {
        let RawKind::File(file) = inode.kind else { return Ok(()) };
        let place = inode.place;
        if i64::try_from(file.file_size).is_err() {
            return Err(Corruption::FileLength { place, found: file.file_size }.into());
        }
        let words = self.word_count(&file);
        let inodes = self.geometry.inodes;
        let left = crate::metadata::Region { start: inode.tail.at, ..inodes };
        let max = left.decoded_len_max() / 4;
        if words > max {
            return Err(Corruption::FileWords { place, words, max }.into());
        }
        let count = self.geometry.fragments.as_ref().map_or(0, |table| table.count);
        if file.fragment != SQUASHFS_INVALID_FRAG && file.fragment >= count {
            return Err(Corruption::FragmentIndex { place, found: file.fragment, count }.into());
        }
        Ok(())
    }

    /// How many size words a file has: its whole blocks, and a short last one unless that is in a fragment.
    pub(crate) fn word_count(&self, file: &RawFile) -> u64 {
        let block_len = u64::from(self.geometry.block_len);
        if file.fragment == SQUASHFS_INVALID_FRAG {
            file.file_size.div_ceil(block_len)
        } else {
            file.file_size / block_len
        }
    }

    /// An owner from the id table.
    fn owner(&self, index: u16, place: Place) -> Result<u32> {
        let missing = || Corruption::IdIndex { place, found: index, count: self.ids.len() as u32 };
        Ok(*self.ids.get(usize::from(index)).ok_or_else(missing)?)
    }

    /// What the rest of packfs is told of an inode.
    pub(crate) fn plain_inode(&self, raw: &RawInode) -> Result<Inode> {
        let owner = Owner {
            uid: self.owner(raw.base.uid.get(), raw.place)?,
            gid: self.owner(raw.base.guid.get(), raw.place)?,
        };
        let mtime = Timestamp::from_seconds(i64::from(raw.base.mtime.get()));
        let kind = match (raw.kind, raw.file_type) {
            (RawKind::Dir(_), _) => InodeKind::Directory,
            (RawKind::File(file), _) => InodeKind::File { len: file.file_size },
            (RawKind::Symlink(_), _) => InodeKind::Symlink,
            (RawKind::Device(rdev), FileType::BlockDevice) => {
                InodeKind::BlockDevice(DeviceNumber::decode(rdev))
            }
            (RawKind::Device(rdev), _) => InodeKind::CharDevice(DeviceNumber::decode(rdev)),
            (RawKind::Ipc, FileType::Socket) => InodeKind::Socket,
            (RawKind::Ipc, _) => InodeKind::Fifo,
        };
        Ok(Inode {
            kind,
            meta: Meta { mode: raw.base.mode.get() & 0o7777, owner, mtime },
            links: raw.nlink,
            number: u64::from(raw.base.inode_number.get()),
            has_xattrs: raw.xattr != SQUASHFS_INVALID_XATTR && self.geometry.xattrs.is_some(),
        })
    }

    /// What Linux says of a file's blocks (`squashfs_read_inode`): its length without what is told to be holes, however well the rest is
    /// compressed. It says none of anything else.
    pub(crate) fn sectors_of(&self, id: InodeId, inode: &Inode) -> Result<u64> {
        let InodeKind::File { len } = inode.kind else { return Ok(0) };
        let RawKind::File(file) = self.raw_inode(id)?.kind else { return Ok(0) };
        Ok(len.saturating_sub(file.sparse).div_ceil(512))
    }

    /// The target of a link.
    pub(crate) fn link_target(&self, id: InodeId) -> Result<Vec<u8>> {
        let raw = self.raw_inode(id)?;
        let RawKind::Symlink(len) = raw.kind else { return Err(not_a("symbolic link", &raw)) };
        let target =
            Cursor::resume(&self.metadata, self.geometry.inodes, "link target", raw.tail)?.read_vec(len)?;
        if target.contains(&0) {
            return Err(Corruption::LinkNul { place: raw.place }.into());
        }
        Ok(target)
    }
}

/// A request that does not fit the inode's type.
pub(crate) fn not_a(wanted: &str, inode: &RawInode) -> Error {
    Error::failed(format!(
        "inode {} is a {}, not a {wanted}",
        inode.base.inode_number,
        inode.file_type.word()
    ))
}

/// The type that an inode type number means; 8 to 14 are the extended forms of 1 to 7.
pub(crate) fn file_type(inode_type: u16) -> Option<FileType> {
    Some(match inode_type {
        SQUASHFS_DIR_TYPE | SQUASHFS_LDIR_TYPE => FileType::Directory,
        SQUASHFS_REG_TYPE | SQUASHFS_LREG_TYPE => FileType::File,
        SQUASHFS_SYMLINK_TYPE | SQUASHFS_LSYMLINK_TYPE => FileType::Symlink,
        SQUASHFS_BLKDEV_TYPE | SQUASHFS_LBLKDEV_TYPE => FileType::BlockDevice,
        SQUASHFS_CHRDEV_TYPE | SQUASHFS_LCHRDEV_TYPE => FileType::CharDevice,
        SQUASHFS_FIFO_TYPE | SQUASHFS_LFIFO_TYPE => FileType::Fifo,
        SQUASHFS_SOCKET_TYPE | SQUASHFS_LSOCKET_TYPE => FileType::Socket,
        _ => return None,
    })
}

/// What follows an inode's base.
struct Body {
    kind: RawKind,
    nlink: u32,
    xattr: u32,
    /// Where what follows starts, if the cursor has gone on from there.
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
            return Body::new(RawKind::Device(raw.rdev.get()), raw.nlink.get(), raw.xattr.get());
        }
        let raw: DevInode = cursor.read()?;
        Body::new(RawKind::Device(raw.rdev.get()), raw.nlink.get(), SQUASHFS_INVALID_XATTR)
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

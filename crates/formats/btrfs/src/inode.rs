//! Inodes.

use crate::bytes::Fields;
use crate::corruption::Corruption;
use crate::disk::kind;
use crate::key::Key;
use crate::volume::{BtrfsVolume, Node, Place};
use packfs_core::{DeviceNumber, FileType, Meta, Owner, Result, Timestamp};
use packfs_format::{Inode, InodeId, InodeKind};

/// Bytes of an inode.
const INODE_LEN: usize = 160;
/// Flag of an inode: its data has no checksums.
const NODATASUM: u64 = 1;
/// Items of an inode that are passed in search of its attributes, at most.
const NEAR_MAX: usize = 8;
/// Nanoseconds of a second.
const NANOS: u32 = 1_000_000_000;

/// Fields of an inode that was checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InodeItem {
    tree: u64,
    inode: u64,
    pub(crate) file_type: FileType,
    pub(crate) mode: u32,
    pub(crate) len: u64,
    /// Bytes of its extents, without holes.
    pub(crate) bytes_used: u64,
    pub(crate) links: u32,
    /// True if its data has no checksums.
    pub(crate) is_unsummed: bool,
    owner: Owner,
    device: u64,
    mtime: (i64, u32),
}

impl InodeItem {
    /// Refuses inodes of another type.
    pub(crate) fn wanted(&self, file_type: FileType) -> Result<()> {
        if self.file_type == file_type {
            return Ok(());
        }
        let (tree, inode) = (self.tree, self.inode);
        let wanted = match file_type {
            FileType::Directory => "directory",
            FileType::Symlink => "symbolic link",
            _ => "regular file",
        };
        Err(Corruption::Wanted { tree, inode, wanted }.into())
    }

    fn kind(&self) -> InodeKind {
        let device = || DeviceNumber {
            major: u32::try_from(self.device >> 20).unwrap_or(u32::MAX),
            minor: u32::try_from(self.device & 0xf_ffff).unwrap_or(0),
        };
        match self.file_type {
            FileType::Directory => InodeKind::Directory,
            FileType::File => InodeKind::File { len: self.len },
            FileType::Symlink => InodeKind::Symlink,
            FileType::BlockDevice => InodeKind::BlockDevice(device()),
            FileType::CharDevice => InodeKind::CharDevice(device()),
            FileType::Fifo => InodeKind::Fifo,
            FileType::Socket => InodeKind::Socket,
        }
    }

    /// Returns permissions, owner, and time.
    pub(crate) fn meta(&self) -> Meta {
        let (seconds, nanos) = self.mtime;
        Meta {
            mode: u16::try_from(self.mode & 0o7777).unwrap_or(0),
            owner: self.owner,
            mtime: Timestamp { seconds, nanos: nanos.min(NANOS.saturating_sub(1)) },
        }
    }
}

impl BtrfsVolume {
    /// Reads an inode.
    pub(crate) fn inode_item(&self, node: &Node) -> Result<InodeItem> {
        let (tree, inode) = (node.tree.id, node.inode);
        let item = node.tree.get(&self.fs.store, &Key::new(inode, kind::INODE_ITEM, 0))?;
        let item = item.ok_or(Corruption::NoInode { tree, inode })?;
        let fields = Fields(item.bytes_of(INODE_LEN)?);
        let mode = fields.u32(0x34);
        let file_type = FileType::from_mode_bits(mode).ok_or(Corruption::Mode { tree, inode, mode })?;
        let len = fields.u64(0x10);
        if i64::try_from(len).is_err() {
            let (place, allowed) = (item.place(), "below 2^63");
            return Err(Corruption::Figure { place, figure: "length", found: len, allowed }.into());
        }
        Ok(InodeItem {
            tree,
            inode,
            file_type,
            mode,
            len,
            bytes_used: fields.u64(0x18),
            links: fields.u32(0x28),
            is_unsummed: fields.u64(0x40) & NODATASUM != 0,
            owner: Owner { uid: fields.u32(0x2c), gid: fields.u32(0x30) },
            device: fields.u64(0x38),
            mtime: (fields.u64(0x88).cast_signed(), fields.u32(0x90)),
        })
    }

    /// Implements [`packfs_format::Volume::inode`].
    pub(crate) fn describe(&self, node: &Node) -> Result<Inode> {
        let item = self.inode_item(node)?;
        let sector_len = u64::from(self.fs.store.super_block().sector_len);
        let bytes = item.bytes_used.checked_next_multiple_of(sector_len).unwrap_or(u64::MAX);
        let doubt = (item.mtime.1 >= NANOS).then_some("its time has more nanoseconds than a second");
        Ok(Inode {
            kind: item.kind(),
            meta: item.meta(),
            links: item.links,
            number: self.number_of(node),
            doubt,
            has_xattrs: self.has_attributes(node),
            sectors: bytes / 512,
        })
    }

    /// True if an inode has attributes. They follow its references, mostly in the same block.
    fn has_attributes(&self, node: &Node) -> bool {
        let (store, inode) = (&self.fs.store, node.inode);
        let (start, end) =
            (Key::new(inode, kind::INODE_ITEM, 0), Key::new(inode, kind::XATTR_ITEM, u64::MAX));
        let mut items = node.tree.items(store, start, end);
        for item in items.by_ref().take(NEAR_MAX) {
            match item {
                Ok(item) if item.key.kind == kind::XATTR_ITEM => return true,
                Ok(_) => {}
                // A damaged item is reported when the attributes are read.
                Err(_) => return true,
            }
        }
        // Many references.
        match items.next() {
            None => false,
            Some(_) => node.tree.items_of(store, inode, kind::XATTR_ITEM, 0).next().is_some(),
        }
    }

    /// Returns the directory that stands for a subvolume which is not in this tree, with the owner
    /// and time of the directory around it.
    pub(crate) fn describe_empty(&self, parent: InodeId, number: u64) -> Result<Inode> {
        let meta = match self.place(parent)? {
            Place::Node(node) => self.inode_item(&node)?.meta(),
            Place::Empty(_) => Meta::default(),
        };
        Ok(Inode {
            kind: InodeKind::Directory,
            meta: Meta { mode: 0o755, ..meta },
            links: 1,
            number,
            doubt: None,
            has_xattrs: false,
            sectors: 0,
        })
    }
}

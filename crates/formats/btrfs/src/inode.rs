//! Inodes.

use crate::corruption::Corruption;
use crate::disk::{RawInodeItem, kind};
use crate::key::Key;
use crate::volume::{BtrfsVolume, Node, Place};
use packfs_core::{DeviceNumber, FileType, Meta, Owner, Result, Timestamp};
use packfs_format::{Inode, InodeId, InodeKind};

/// Inode flag `BTRFS_INODE_NODATASUM`.
const NODATASUM: u64 = 1;
/// Items after an inode that are scanned for its attributes before they are looked up.
const NEAR_MAX: usize = 8;
const NANOS: u32 = 1_000_000_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct InodeItem {
    tree: u64,
    inode: u64,
    pub(crate) file_type: FileType,
    pub(crate) mode: u32,
    pub(crate) len: u64,
    pub(crate) bytes_used: u64,
    pub(crate) links: u32,
    pub(crate) is_unsummed: bool,
    owner: Owner,
    device: u64,
    mtime: (i64, u32),
}

impl InodeItem {
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
            minor: (self.device & 0xf_ffff) as u32,
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

    pub(crate) fn meta(&self) -> Meta {
        let (seconds, nanos) = self.mtime;
        Meta {
            mode: (self.mode & 0o7777) as u16,
            owner: self.owner,
            mtime: Timestamp { seconds, nanos: nanos.min(NANOS - 1) },
        }
    }
}

impl BtrfsVolume {
    pub(crate) fn inode_item(&self, node: &Node) -> Result<InodeItem> {
        let (tree, inode) = (node.tree.id, node.inode);
        let item = node.tree.get(&self.fs.store, &Key::new(inode, kind::INODE_ITEM, 0))?;
        let item = item.ok_or(Corruption::NoInode { tree, inode })?;
        let raw: RawInodeItem = item.head()?;
        let mode = raw.mode.get();
        let file_type = FileType::from_mode_bits(mode).ok_or(Corruption::Mode { tree, inode, mode })?;
        let len = raw.size.get();
        if i64::try_from(len).is_err() {
            let place = item.place();
            let allowed = "below 2^63";
            return Err(Corruption::Figure { place, figure: "length", found: len, allowed }.into());
        }
        Ok(InodeItem {
            tree,
            inode,
            file_type,
            mode,
            len,
            bytes_used: raw.nbytes.get(),
            links: raw.nlink.get(),
            is_unsummed: raw.flags.get() & NODATASUM != 0,
            owner: Owner { uid: raw.uid.get(), gid: raw.gid.get() },
            device: raw.rdev.get(),
            mtime: (raw.mtime.sec.get().cast_signed(), raw.mtime.nsec.get()),
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

    /// Attributes follow the references of an inode, mostly in the same block.
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

    /// Describes the directory instead of a subvolume that is not in this tree, with the owner and
    /// time of its parent.
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

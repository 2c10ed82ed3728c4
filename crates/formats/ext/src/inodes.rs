//! Access to inodes in use: checked, and converted.

use crate::corruption::Corruption;
use crate::inode::{EXTENTS, INLINE, RawInode, XATTR_VALUE};
use crate::reader::Reader;
use crate::super_block::{INODE_LEN_MIN, ROOT};
use packfs_core::{FileType, Meta, Result};
use packfs_format::{Inode, InodeKind, units::*};

const FILE_BLOCKS_MAX: u64 = 1 << 32;

impl Reader {
    pub(crate) fn used_inode(&self, number: u64) -> Result<RawInode> {
        let raw = self.raw_inode(number)?;
        let inode = raw.number;
        if raw.links() == 0 {
            return Err(Corruption::Unused { inode }.into());
        }
        self.check_inode(&raw)?;
        Ok(raw)
    }

    pub(crate) fn check_inode(&self, raw: &RawInode) -> Result<()> {
        let inode = raw.number;
        let Some(file_type) = raw.file_type() else {
            return Err(Corruption::Mode { inode, found: raw.mode() }.into());
        };
        let room = raw.bytes().len().minus(INODE_LEN_MIN);
        let extra = raw.extra_len();
        if usize::from(extra) > room || !extra.is_multiple_of(4) {
            return Err(Corruption::ExtraLength { inode, found: extra, max: room }.into());
        }
        if raw.has(INLINE) && raw.has(EXTENTS) {
            return Err(Corruption::Flags { inode, fault: "inline data and extents at once" }.into());
        }
        let (found, max) = (raw.len(&self.super_block), FILE_BLOCKS_MAX.times(self.super_block.block_len));
        if found > max {
            return Err(Corruption::Size { inode, found, max }.into());
        }
        let is_whole = found.is_multiple_of(self.super_block.block_len) || raw.has(INLINE);
        if file_type == FileType::Directory && !is_whole {
            return Err(Corruption::DirSize { inode, found }.into());
        }
        Ok(())
    }

    pub(crate) fn named_inode(&self, number: u64) -> Result<RawInode> {
        let raw = self.used_inode(number)?;
        let inode = raw.number;
        if inode < self.super_block.first_inode && inode != ROOT {
            return Err(Corruption::Reserved { inode }.into());
        }
        if raw.has(XATTR_VALUE) {
            return Err(
                Corruption::Flags { inode, fault: "contains an extended attribute, not a file" }.into()
            );
        }
        Ok(raw)
    }

    pub(crate) fn inode_of(&self, raw: &RawInode) -> Result<Inode> {
        let file_type = raw.file_type().ok_or(Corruption::Mode { inode: raw.number, found: raw.mode() })?;
        let len = raw.len(&self.super_block);
        let kind = match file_type {
            FileType::Directory => InodeKind::Directory,
            FileType::File => InodeKind::File { len },
            FileType::Symlink => InodeKind::Symlink,
            FileType::BlockDevice => InodeKind::BlockDevice(raw.device()),
            FileType::CharDevice => InodeKind::CharDevice(raw.device()),
            FileType::Fifo => InodeKind::Fifo,
            FileType::Socket => InodeKind::Socket,
        };
        let sectors = raw.sectors(&self.super_block);
        // Linux reports inline data for files only.
        let is_inline = file_type == FileType::File && raw.has(INLINE);
        let inline_sectors = if is_inline { len.div_ceil(512) } else { 0 };
        Ok(Inode {
            kind,
            meta: Meta { mode: raw.mode() & 0o7777, owner: raw.owner(), mtime: raw.mtime() },
            links: u32::from(raw.links()),
            number: u64::from(raw.number),
            doubt: None,
            has_xattrs: self.has_xattrs(raw),
            sectors: sectors.plus(inline_sectors),
        })
    }
}

//! The opened image as a [`Volume`].

use crate::corruption::Corruption;
use crate::inode::{DiskInode, Fork};
use crate::log::{LogState, Notes};
use crate::patches::Patches;
use crate::realtime::Realtime;
use crate::super_block::{SECTOR, SuperBlock};
use packfs_core::{Error, FileType, Image, Meta, Owner, Result, Xattrs};
use packfs_format::{
    BlockCache, DirCursor, DirEntry, Extent, ExtentFrom, Extents, Facts, Finding, FormatInfo, Inode, InodeId,
    InodeKind, NameIndex, SpaceOwner, Volume,
};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// An opened XFS image.
pub(crate) struct XfsVolume {
    /// The filesystem with the changes of its log.
    pub(crate) image: Arc<dyn Image>,
    /// The image with file data, if that is another one: with the changes of the log, and with the
    /// realtime device behind it, if that was given.
    pub(crate) data_image: Option<Arc<dyn Image>>,
    pub(crate) super_block: SuperBlock,
    pub(crate) realtime: Realtime,
    /// Clusters of inodes, by their offset.
    pub(crate) clusters: BlockCache<Vec<u8>>,
    /// Other metadata that was verified.
    pub(crate) blocks: BlockCache<Vec<u8>>,
    pub(crate) names: NameIndex,
    pub(crate) warnings: Vec<String>,
    pub(crate) log: LogState,
    pub(crate) notes: Notes,
    pub(crate) patches: Patches,
}

impl XfsVolume {
    /// Returns the inode of a regular file.
    fn file(&self, id: InodeId) -> Result<DiskInode> {
        let inode = self.disk_inode(id.0)?;
        match inode.file_type {
            FileType::File => Ok(inode),
            _ => Err(Corruption::Kind { ino: id.0, wanted: "regular file" }.into()),
        }
    }

    /// Returns the source of `len` bytes of an extent.
    fn stored(&self, inode: &DiskInode, start: u64, count: u64, range: &Range<u64>) -> Result<ExtentFrom> {
        let ino = inode.ino;
        let at = match inode.is_realtime {
            true => self.realtime.data_at(start, count),
            false => self.super_block.blocks_at(start, count),
        };
        let Some(at) = at else {
            return Err(Corruption::ExtentPlace { ino, offset: range.start, start, count }.into());
        };
        let len = self.data_image.as_ref().map_or_else(|| self.image.len(), |image| image.len());
        if at.saturating_add(packfs_core::len_of(range)) > len {
            return Err(Corruption::ExtentBehind { ino, offset: range.start, at, len }.into());
        }
        Ok(ExtentFrom::Stored(at))
    }

    fn each_extent(&self, inode: &DiskInode, extents: &mut Extents<'_>) -> Result<()> {
        let block_len = self.super_block.block_len;
        let range = extents.range();
        let end = range.end.min(inode.size);
        let mut at = range.start;
        let mut is_over = false;
        self.each_mapping(inode, Fork::Data, self.super_block.block_of(range.start), &mut |mapping| {
            let start = mapping.offset.saturating_mul(block_len);
            let stop = mapping.end().saturating_mul(block_len).min(end);
            if start >= end || start >= stop {
                return Ok(ControlFlow::Break(()));
            }
            let mut flow = hole(extents, at..start);
            let covered = start..stop;
            let from = match mapping.is_unwritten {
                true => ExtentFrom::Hole,
                false => self.stored(inode, mapping.start, mapping.count, &covered)?,
            };
            if flow.is_continue() {
                flow = extents.push(Extent { offset: start, len: packfs_core::len_of(&covered), from });
            }
            at = stop.max(at);
            is_over = flow.is_break();
            Ok(flow)
        })?;
        if !is_over {
            let _ = hole(extents, at..end);
        }
        Ok(())
    }
}

/// Hands out a hole, if there is one.
fn hole(extents: &mut Extents<'_>, range: Range<u64>) -> ControlFlow<()> {
    match packfs_core::len_of(&range) {
        0 => ControlFlow::Continue(()),
        len => extents.push(Extent { offset: range.start, len, from: ExtentFrom::Hole }),
    }
}

impl Volume for XfsVolume {
    fn format(&self) -> &'static FormatInfo {
        &crate::INFO
    }

    fn root(&self) -> InodeId {
        InodeId(self.super_block.root)
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        let inode = self.disk_inode(id.0)?;
        let kind = match inode.file_type {
            FileType::Directory => InodeKind::Directory,
            FileType::File => InodeKind::File { len: inode.size },
            FileType::Symlink => InodeKind::Symlink,
            FileType::BlockDevice => InodeKind::BlockDevice(inode.device()),
            FileType::CharDevice => InodeKind::CharDevice(inode.device()),
            FileType::Fifo => InodeKind::Fifo,
            FileType::Socket => InodeKind::Socket,
        };
        let owner = Owner { uid: inode.uid, gid: inode.gid };
        Ok(Inode {
            kind,
            meta: Meta { mode: inode.mode, owner, mtime: inode.mtime },
            links: inode.links,
            number: id.0,
            doubt: inode.has_time_fault.then_some("its time has a billion nanoseconds or more"),
            has_xattrs: self.has_attrs(&inode)?,
            sectors: inode.blocks.saturating_mul(self.super_block.block_len / SECTOR),
        })
    }

    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        self.find_entry(dir, name)
    }

    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        self.each_entry(dir, from, visit)
    }

    /// Linux refuses such an image.
    fn fault(&self) -> Option<Error> {
        let sum = self.super_block.checksum.filter(|sum| !sum.is_right())?;
        Some(Error::from(Corruption::SuperChecksum { sum }).hint("--ignore-checksum reads it anyway"))
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        self.target_of(id)
    }

    fn xattrs(&self, id: InodeId) -> Result<Xattrs> {
        self.attrs(id)
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let inode = self.file(id)?;
        let has_data = inode.extent_count(Fork::Data) > 0 || inode.form == crate::inode::Form::Tree;
        if inode.is_realtime && has_data && !self.realtime.is_given() {
            let message = format!(
                "inode {}: its data is on the realtime device of the image, which is not given",
                id.0
            );
            return Err(Error::failed(message).hint("--device FILE gives it"));
        }
        let range = range.start..range.end.min(inode.size);
        let mut extents = Extents::new(range, visit);
        self.each_extent(&inode, &mut extents)?;
        extents.finish();
        Ok(())
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        self.data_image.clone()
    }

    fn image_len(&self) -> Option<u64> {
        Some(self.super_block.len().min(self.image.len()))
    }

    fn inode_count_hint(&self) -> u64 {
        self.super_block.inode_count.saturating_sub(self.super_block.inodes_free)
    }

    fn facts(&self) -> Result<Facts> {
        Ok(self.describe())
    }

    fn space(&self) -> Result<Vec<SpaceOwner>> {
        self.owners()
    }

    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        self.check_all(found)
    }
}

//! The opened image as a [`Volume`].

use crate::corruption::Corruption;
use crate::inode::{DiskInode, Fork};
use crate::kept::KeptBlock;
use crate::log::{LogState, Notes};
use crate::mapping::Mapping;
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
    pub(crate) blocks: BlockCache<KeptBlock>,
    pub(crate) names: NameIndex,
    /// Errors of directories that were searched.
    pub(crate) damage: BlockCache<Option<Error>>,
    pub(crate) warnings: Vec<String>,
    pub(crate) log: LogState,
    /// Fault of records that the replay left out.
    pub(crate) log_fault: Option<Corruption>,
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

    /// Returns the source of an extent, and the bytes of it that the image has.
    fn stored(&self, inode: &DiskInode, mapping: &Mapping, range: &Range<u64>) -> Result<(ExtentFrom, u64)> {
        let (ino, start, count) = (inode.ino, mapping.start, mapping.count);
        if inode.is_realtime && !self.realtime.is_given() {
            let message =
                format!("inode {ino}: its data is on the realtime device of the image, which is not given");
            return Err(Error::failed(message).hint("--device FILE gives it"));
        }
        let at = match inode.is_realtime {
            true => self.realtime.data_at(start, count),
            false => self.super_block.blocks_at(start, count),
        };
        let Some(at) = at else {
            return Err(Corruption::ExtentPlace { ino, offset: range.start, start, count }.into());
        };
        // The realtime device lies behind the image.
        let len = match &self.data_image {
            Some(image) if inode.is_realtime => image.len(),
            _ => self.image.len(),
        };
        Ok((ExtentFrom::Stored(at), len.saturating_sub(at).min(packfs_core::len_of(range))))
    }

    fn each_extent(&self, inode: &DiskInode, mut extents: Extents<'_>) -> Result<()> {
        let block_len = self.super_block.block_len;
        let range = extents.range();
        let end = range.end.min(inode.size);
        let mut at = range.start;
        let mut is_over = false;
        let first = self.super_block.block_of(range.start);
        let walked = self.each_mapping(inode, Fork::Data, first, &mut |mapping| {
            let start = mapping.offset.saturating_mul(block_len);
            let stop = mapping.end().saturating_mul(block_len).min(end);
            if start >= end || start >= stop {
                return Ok(ControlFlow::Break(()));
            }
            let mut flow = hole(&mut extents, at..start);
            let covered = start..stop;
            let (from, len) = match mapping.is_unwritten {
                true => (ExtentFrom::Hole, packfs_core::len_of(&covered)),
                false => self.stored(inode, &mapping, &covered)?,
            };
            if flow.is_continue() && len > 0 {
                flow = extents.push(Extent { offset: start, len, from });
            }
            at = start.saturating_add(len).max(at);
            is_over = flow.is_break();
            if at < stop && !is_over {
                let (ino, place) = (inode.ino, if let ExtentFrom::Stored(at) = from { at } else { 0 });
                let place = place.saturating_add(len);
                let fault = Corruption::ExtentBehind { ino, offset: at, at: place, len: self.image.len() };
                return Err(fault.into());
            }
            Ok(flow)
        });
        if walked.is_err() {
            // Data before the fault is handed out.
            extents.finish();
            return walked;
        }
        if !is_over {
            let _ = hole(&mut extents, at..end);
        }
        extents.finish();
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

    /// Linux refuses an image with a wrong checksum or without its log.
    fn fault(&self) -> Option<Error> {
        let sum = self.super_block.checksum.filter(|sum| !sum.is_right());
        let sum = sum.map(|sum| Error::from(Corruption::SuperChecksum { sum }));
        sum.map(|error| error.hint("--ignore-checksum reads it anyway")).or(self.log_fault.map(Error::from))
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
        let range = range.start..range.end.min(inode.size);
        if range.is_empty() {
            return Ok(());
        }
        self.each_extent(&inode, Extents::new(range, visit))
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        self.data_image.clone()
    }

    fn image_len(&self) -> Option<u64> {
        let realtime = match self.super_block.rt_start {
            0 => 0,
            start => start.saturating_mul(self.super_block.block_len).saturating_add(self.realtime.len()),
        };
        Some(self.super_block.len().max(realtime).min(self.image.len()))
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

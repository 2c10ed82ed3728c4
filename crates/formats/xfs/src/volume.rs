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
    BlockCache, Extent, Extents, Facts, FormatInfo, Health, Inode, InodeId, InodeKind, NameIndex, Volume,
    units::*,
};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

pub(crate) struct XfsVolume {
    /// The filesystem with the changes of its log.
    pub(crate) image: Arc<dyn Image>,
    /// Image with file data if it differs: with the changes of the log, followed by the given
    /// realtime device.
    pub(crate) data_image: Option<Arc<dyn Image>>,
    pub(crate) super_block: SuperBlock,
    pub(crate) realtime: Realtime,
    pub(crate) clusters: BlockCache<Vec<u8>>,
    /// Other verified metadata.
    pub(crate) blocks: BlockCache<KeptBlock>,
    pub(crate) names: NameIndex,
    /// Errors of directories in which a name was not found.
    pub(crate) damage: BlockCache<Option<Error>>,
    pub(crate) warnings: Vec<String>,
    pub(crate) log: LogState,
    /// Fault of records that the replay skipped.
    pub(crate) log_fault: Option<Corruption>,
    pub(crate) notes: Notes,
    pub(crate) patches: Patches,
}

impl XfsVolume {
    fn file(&self, id: InodeId) -> Result<DiskInode> {
        let inode = self.disk_inode(id.0)?;
        match inode.file_type {
            FileType::File => Ok(inode),
            _ => Err(Corruption::Kind { ino: id.0, wanted: "regular file" }.into()),
        }
    }

    /// Returns the offset of an extent, and the number of its bytes within the image.
    fn stored(&self, inode: &DiskInode, mapping: &Mapping, range: &Range<u64>) -> Result<(u64, u64)> {
        let ino = inode.ino;
        let start = mapping.start;
        let count = mapping.count;
        if inode.is_realtime && !self.realtime.is_given() {
            let message =
                format!("inode {ino}: its data is on the realtime device of the image, which is not given");
            return Err(Error::failed(message).hint("--device FILE gives it"));
        }
        let at = if inode.is_realtime {
            self.realtime.data_at(start, count)
        } else {
            self.super_block.blocks_at(start, count)
        };
        let Some(at) = at else {
            return Err(Corruption::ExtentPlace { ino, offset: range.start, start, count }.into());
        };
        // The realtime device follows the image.
        let len = match &self.data_image {
            Some(image) if inode.is_realtime => image.len(),
            _ => self.image.len(),
        };
        Ok((at, left(len, at).min(packfs_core::len_of(range))))
    }

    fn each_extent(&self, inode: &DiskInode, mut extents: Extents<'_>) -> Result<()> {
        let block_len = self.super_block.block_len;
        let range = extents.range();
        let end = range.end.min(inode.size);
        let first = self.super_block.block_of(range.start);
        let walked = self.each_mapping(inode, Fork::Data, first, &mut |mapping| {
            let start = nth_at(0, mapping.offset, block_len);
            let stop = nth_at(0, mapping.end(), block_len).min(end);
            if start >= end || start >= stop {
                return Ok(ControlFlow::Break(()));
            }
            let filled = extents.fill_to(start);
            if filled.is_break() || mapping.is_unwritten {
                return Ok(if filled.is_break() { filled } else { extents.hole(start..stop) });
            }
            let (at, len) = self.stored(inode, &mapping, &(start..stop))?;
            let there = start.plus(len);
            let flow = extents.stored(start..there, at);
            if there < stop && flow.is_continue() {
                let (ino, place) = (inode.ino, at.plus(len));
                let fault = Corruption::ExtentBehind { ino, offset: there, at: place, len: self.image.len() };
                return Err(fault.into());
            }
            Ok(flow)
        });
        if walked.is_ok() {
            let _ = extents.fill_to(end);
        }
        extents.finish(walked)
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
            FileType::BlockDevice => InodeKind::BlockDevice(inode.device()?),
            FileType::CharDevice => InodeKind::CharDevice(inode.device()?),
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
            sectors: nth_at(0, inode.blocks, self.super_block.block_len / SECTOR),
        })
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
            start => nth_at(self.realtime.len(), start, self.super_block.block_len),
        };
        Some(self.super_block.len().max(realtime).min(self.image.len()))
    }

    fn inode_count_hint(&self) -> u64 {
        left(self.super_block.inode_count, self.super_block.inodes_free)
    }

    fn facts(&self) -> Result<Facts> {
        Ok(self.describe())
    }

    fn health(&self) -> Option<&dyn Health> {
        Some(self)
    }
}

impl Health for XfsVolume {
    /// Linux refuses an image with a wrong checksum or without its log.
    fn fault(&self) -> Option<Error> {
        let sum = self.super_block.checksum.filter(|sum| !sum.is_right());
        let sum = sum.map(|sum| Error::from(Corruption::SuperChecksum { sum }));
        sum.map(|error| error.hint("--ignore-checksum reads it anyway")).or(self.log_fault.map(Error::from))
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

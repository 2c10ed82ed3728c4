//! Targets of symbolic links: in the inode, or in blocks.

use crate::corruption::Corruption;
use crate::disk::{Checksum, be32, be64};
use crate::inode::{DiskInode, Fork, Form};
use crate::volume::XfsVolume;
use packfs_core::{FileType, Result, usize_of};
use packfs_format::{FaultPlace, InodeId};
use std::ops::ControlFlow;

/// Longest target (`XFS_SYMLINK_MAXLEN`), in bytes.
const TARGET_LEN_MAX: u64 = 1024;
/// Bytes of the header of version 5, and offsets in it.
const HEADER_LEN: usize = 56;
const CHECKSUM_AT: usize = 12;
const UUID_AT: usize = 16;
const OWNER_AT: usize = 32;
const PLACE_AT: usize = 40;
/// `XSLM`.
const MAGIC: u32 = 0x5853_4c4d;

impl XfsVolume {
    /// Implements [`packfs_format::Volume::read_link`].
    pub(crate) fn target_of(&self, id: InodeId) -> Result<Vec<u8>> {
        let (ino, inode) = (id.0, self.disk_inode(id.0)?);
        if inode.file_type != FileType::Symlink {
            return Err(Corruption::Kind { ino, wanted: "symbolic link" }.into());
        }
        if !(1..=TARGET_LEN_MAX).contains(&inode.size) {
            return Err(Corruption::SymlinkLength { ino, found: inode.size }.into());
        }
        let mut target = match inode.form {
            Form::Local => inode.fork(Fork::Data).to_vec(),
            _ => self.remote_target(&inode)?,
        };
        if (target.len() as u64) < inode.size {
            let (found, wanted) = (target.len() as u64, inode.size);
            return Err(Corruption::SymlinkShort { ino, found, wanted }.into());
        }
        target.truncate(usize_of(inode.size));
        if target.contains(&0) { Err(Corruption::SymlinkNul { ino }.into()) } else { Ok(target) }
    }

    /// Reads the parts of a target. Each extent of version 5 begins with a header.
    fn remote_target(&self, inode: &DiskInode) -> Result<Vec<u8>> {
        let mut target: Vec<u8> = Vec::new();
        // More blocks than the longest target takes are not read.
        let most = TARGET_LEN_MAX.div_ceil(self.super_block.block_len).saturating_add(1);
        self.each_mapping(inode, Fork::Data, 0, &mut |mapping| {
            let run = (mapping.start, mapping.count.min(most));
            let bytes = self.read_runs(&[run], inode.ino)?;
            let bytes = match self.super_block.is_v5() {
                true => self.target_part(inode, &bytes, mapping.start, target.len())?,
                false => &bytes,
            };
            target.extend_from_slice(bytes);
            Ok(if target.len() as u64 >= inode.size {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })?;
        Ok(target)
    }

    /// Verifies a part of a target, and returns its bytes.
    fn target_part<'a>(
        &self,
        inode: &DiskInode,
        bytes: &'a [u8],
        start: u64,
        done: usize,
    ) -> Result<&'a [u8]> {
        let place = FaultPlace::at("link target block", self.super_block.blocks_at(start, 1).unwrap_or(0));
        let found = be32(bytes, 0);
        if found != MAGIC {
            return Err(Corruption::BlockMagic { place, found, wanted: "XSLM" }.into());
        }
        let sum = Checksum::of(bytes, CHECKSUM_AT);
        if !sum.is_right() {
            return Err(Corruption::Checksum { place, sum }.into());
        }
        self.verify_place(bytes, PLACE_AT, UUID_AT, place)?;
        let (found, wanted) = (be64(bytes, OWNER_AT), inode.ino);
        if found != wanted {
            return Err(Corruption::BlockOwner { place, found, wanted }.into());
        }
        let (offset, len) = (be32(bytes, 4), usize_of(be32(bytes, 8).into()));
        let stored = bytes.get(HEADER_LEN..).unwrap_or_default();
        match stored.get(..len).filter(|_| usize_of(offset.into()) == done && len > 0) {
            Some(stored) => Ok(stored),
            None => Err(Corruption::AttrPart { place, offset: offset.into(), len: len as u64 }.into()),
        }
    }
}

//! Targets of symbolic links: in the inode, or in blocks.

use crate::corruption::Corruption;
use crate::disk::XFS_SYMLINK_MAGIC;
use crate::inode::{DiskInode, Fork, Form};
use crate::volume::XfsVolume;
use packfs_core::{FileType, Result, usize_of};
use packfs_format::{InodeId, units::*};
use std::ops::ControlFlow;

/// `XFS_SYMLINK_MAXLEN`.
const TARGET_LEN_MAX: u64 = 1024;
/// Name, magic, and its text in the version 5 header.
const HEADER: (&str, u32, &str) = ("link target block", XFS_SYMLINK_MAGIC, "XSLM");

impl XfsVolume {
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

    /// Reads the parts of a target. Each extent of version 5 starts with a header.
    fn remote_target(&self, inode: &DiskInode) -> Result<Vec<u8>> {
        let mut target: Vec<u8> = Vec::new();
        // Bounds the read by the longest target.
        let most = TARGET_LEN_MAX.div_ceil(self.super_block.block_len).plus(1);
        self.each_mapping(inode, Fork::Data, 0, &mut |mapping| {
            let run = (mapping.start, mapping.count.min(most));
            let bytes = self.read_runs(&[run], inode.ino)?;
            let bytes = if self.super_block.is_v5() {
                self.remote_part(HEADER, inode.ino, (&bytes, mapping.start), target.len())?
            } else {
                &bytes
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
}

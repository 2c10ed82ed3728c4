//! Clusters of inodes: read together, and kept in a bounded cache.

use crate::corruption::Corruption;
use crate::inode::DiskInode;
use crate::volume::XfsVolume;
use packfs_core::{Result, usize_of};
use packfs_format::units::*;

const CLUSTER_LEN: u64 = 16 << 10;

impl XfsVolume {
    pub(crate) fn disk_inode(&self, ino: u64) -> Result<DiskInode> {
        let super_block = &self.super_block;
        let Some((block, slot)) = super_block.inode_at(ino) else {
            return Err(Corruption::InodePlace { ino }.into());
        };
        let (group, block) = super_block.split(block);
        let count = super_block.block_of(CLUSTER_LEN).max(1);
        let first = block & !count.minus(1);
        let at = super_block.ag_block_at(group, first);
        let cluster = self.clusters.get_or(at, || {
            let count = count.min(super_block.ag_len(group).minus(first));
            let mut bytes = vec![0; usize_of(count.times(super_block.block_len))];
            let len = self.image.read_at(at, &mut bytes)?;
            bytes.truncate(len);
            Ok((bytes, len))
        })?;
        let skipped = block.minus(first).times(super_block.block_len);
        let slot_at = slot.times(super_block.inode_len as u64);
        let (cluster_at, at) = (at, usize_of(skipped.plus(slot_at)));
        if at.plus(super_block.inode_len) > cluster.len() {
            let at = cluster_at.plus(at as u64);
            return Err(Corruption::InodeBehind { ino, at, len: self.image.len() }.into());
        }
        let mut inode = DiskInode::parse(super_block, ino, cluster, at)?;
        self.patches.change(&mut inode);
        Ok(inode)
    }
}

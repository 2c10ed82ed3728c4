//! Owners of the bytes of an image: headers and trees of groups, and blocks of inodes in use.

use crate::group::{TREES, headers_len};
use crate::inode::{DiskInode, Fork};
use crate::mapping::Mapping;
use crate::volume::XfsVolume;
use packfs_core::{ErrorKind, FileType, Result, range_at};
use packfs_format::{Space, SpaceOwner, space_owners, units::*};
use std::ops::{ControlFlow, Range};

/// Limit of claims: an image may name many more than it has blocks.
const CLAIMS_MAX: usize = 1 << 24;

type Claims = Vec<(Range<u64>, &'static str)>;

impl XfsVolume {
    fn claim_trees(&self, group: u64, claims: &mut Claims) -> Result<()> {
        let block_len = self.super_block.block_len;
        let range = |block: u64| {
            let at = self.super_block.ag_block_at(group, block);
            range_at(at, block_len)
        };
        for row in &TREES {
            let walked = self.each_record(group, row, &mut |block, record| {
                if record.is_none() {
                    claims.push((range(block), "allocation trees"));
                }
                Ok(ControlFlow::Continue(()))
            });
            unless_corrupt(walked)?;
        }
        if let Some(blocks) = unless_corrupt(self.reserved_blocks(group))? {
            claims.extend(blocks.into_iter().map(|block| (range(block), "reserved for trees")));
        }
        Ok(())
    }

    fn claim_inodes(&self, group: u64, claims: &mut Claims) -> Result<()> {
        let inode_len = self.super_block.inode_len as u64;
        let walked = self.each_chunk(group, &mut |chunk| {
            // Inodes are adjacent, except for holes in a chunk.
            let mut run: Option<Range<u64>> = None;
            for (number, is_used) in chunk.inodes() {
                let ino = self.super_block.inode_of(group, number);
                let Some((block, slot)) = self.super_block.inode_at(ino) else { continue };
                let Some(at) = self.super_block.blocks_at(block, 1) else { continue };
                let range = range_at(at.plus(slot.times(inode_len)), inode_len);
                match &mut run {
                    Some(run) if run.end == range.start => run.end = range.end,
                    run => claims.extend(run.replace(range).map(|range| (range, "inodes"))),
                }
                if is_used && let Some(inode) = unless_corrupt(self.disk_inode(ino))? {
                    unless_corrupt(self.claim_forks(&inode, claims))?;
                }
                if claims.len() >= CLAIMS_MAX {
                    return Ok(ControlFlow::Break(()));
                }
            }
            claims.extend(run.map(|range| (range, "inodes")));
            Ok(ControlFlow::Continue(()))
        });
        unless_corrupt(walked).map(drop)
    }

    fn claim_forks(&self, inode: &DiskInode, claims: &mut Claims) -> Result<()> {
        let data = match inode.file_type {
            FileType::Directory => "directories",
            FileType::Symlink => "link targets",
            _ => "file data",
        };
        for (fork, owner) in [(Fork::Data, data), (Fork::Attr, "xattrs")] {
            if fork == Fork::Attr && !inode.has_attr_fork() {
                continue;
            }
            if !(fork == Fork::Data && inode.is_realtime) {
                self.each_mapping(inode, fork, 0, &mut |mapping| {
                    claims.extend(self.mapping_range(&mapping).map(|range| (range, owner)));
                    Ok(if claims.len() < CLAIMS_MAX {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    })
                })?;
            }
            self.each_tree_block(inode, fork, &mut |block| {
                let mapping = Mapping { offset: 0, start: block, count: 1, is_unwritten: false };
                claims.extend(self.mapping_range(&mapping).map(|range| (range, "extent trees")));
            })?;
        }
        Ok(())
    }

    pub(crate) fn mapping_range(&self, mapping: &Mapping) -> Option<Range<u64>> {
        let at = self.super_block.blocks_at(mapping.start, mapping.count)?;
        Some(range_at(at, mapping.count.times(self.super_block.block_len)))
    }
}

impl Space for XfsVolume {
    /// Damaged structures claim nothing.
    fn space(&self) -> Result<Vec<SpaceOwner>> {
        let mut claims = Claims::new();
        for group in 0..self.super_block.ag_count {
            let at = self.super_block.ag_block_at(group, 0);
            if at >= self.image.len() || claims.len() >= CLAIMS_MAX {
                break;
            }
            claims.push((range_at(at, self.super_block.sector_len), "superblock"));
            let headers = at.plus(headers_len(&self.super_block));
            claims.push((at.plus(self.super_block.sector_len)..headers, "group headers"));
            self.claim_trees(group, &mut claims)?;
            self.claim_inodes(group, &mut claims)?;
        }
        claims.extend(self.super_block.internal_log().map(|log| (log, "log")));
        claims.sort_by_key(|(range, _)| range.start);
        let end = self.super_block.len();
        if self.image.len() > end {
            claims.push((end..self.image.len(), "padding"));
        }
        Ok(space_owners(claims, self.image.len()))
    }
}

/// Converts corruption to `None`.
fn unless_corrupt<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
        Err(error) => Err(error),
    }
}

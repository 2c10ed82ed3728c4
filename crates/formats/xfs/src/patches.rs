//! Files whose mappings and lengths differ from their inodes.

use crate::inode::{DiskInode, Fork};
use crate::mapping::Mapping;
use packfs_format::units::*;
use std::collections::HashMap;

/// Files whose changes were finished.
#[derive(Default)]
pub(crate) struct Patches {
    mappings: HashMap<u64, Vec<Mapping>>,
    pub(crate) sizes: HashMap<u64, u64>,
    blocks: HashMap<u64, i64>,
}

impl Patches {
    pub(crate) fn has(&self, ino: u64) -> bool {
        self.mappings.contains_key(&ino)
    }

    pub(crate) fn mappings(&self, ino: u64, fork: Fork) -> Option<&[Mapping]> {
        self.mappings.get(&ino).filter(|_| fork == Fork::Data).map(Vec::as_slice)
    }

    pub(crate) fn change(&self, inode: &mut DiskInode) {
        if let Some(size) = self.sizes.get(&inode.ino) {
            inode.size = *size;
        }
        if let Some(more) = self.blocks.get(&inode.ino) {
            inode.blocks = inode.blocks.saturating_add_signed(*more);
        }
    }

    /// Replaces the mappings of a file, which gains `more` blocks.
    pub(crate) fn set(&mut self, ino: u64, mappings: Vec<Mapping>, more: i64) {
        self.mappings.insert(ino, mappings);
        let blocks = self.blocks.entry(ino).or_default();
        *blocks = blocks.plus(more);
    }
}

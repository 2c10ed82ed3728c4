//! Listings of directories and their positions: an inode and a name for each entry.
//!
//! Listings are stored breadth first, the root's after the superblock, where kernels expect it.
//! Entries are sorted by bytes.

use crate::disk::*;
use packfs_core::{NodeId, Result, Tree};
use std::collections::HashMap;

/// Length of a directory's listing; 0 for other nodes.
pub(super) fn listing_len(tree: &Tree, id: NodeId) -> u64 {
    if !tree.node(id).is_dir() {
        return 0;
    }
    tree.entries(id).map(|entry| u64::from(INODE_LEN) + padded(entry.name.len()) as u64).sum()
}

pub(super) struct Listings {
    /// In the order of their listings.
    dirs: Vec<NodeId>,
    places: HashMap<NodeId, (u64, u32)>,
    pub end: u64,
}

impl Listings {
    /// Places listings from `start` on.
    ///
    /// Errors: `Failed` for more than 256 MiB in total.
    pub(super) fn place(tree: &Tree, start: u64) -> Result<Self> {
        let mut dirs = vec![NodeId::ROOT];
        let mut places = HashMap::new();
        let mut end = start;
        let mut next = 0;
        while let Some(&dir) = dirs.get(next) {
            let len = listing_len(tree, dir);
            dirs.extend(tree.entries(dir).map(|entry| entry.node).filter(|&node| tree.node(node).is_dir()));
            let start = if len == 0 { 0 } else { end };
            places.insert(dir, (start, len as u32));
            end += len;
            next += 1;
        }
        if end > OFFSET_END {
            return Err(super::bounds::too_large());
        }
        Ok(Listings { dirs, places, end })
    }

    /// Start of a directory's listing (0 if it is empty), and its length.
    pub(super) fn of(&self, dir: NodeId) -> (u64, u32) {
        self.places.get(&dir).copied().unwrap_or_default()
    }

    /// Encodes all listings, with the inode of each node.
    pub(super) fn write(
        &self,
        order: ByteOrder,
        tree: &Tree,
        inode: impl Fn(NodeId) -> Result<CramfsInode>,
    ) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for &dir in &self.dirs {
            for entry in tree.entries(dir) {
                let name_len = padded(entry.name.len());
                let inode = CramfsInode { name_len: name_len as u32, ..inode(entry.node)? };
                bytes.extend_from_slice(&inode.to_bytes(order));
                bytes.extend_from_slice(entry.name);
                bytes.resize(bytes.len() + name_len - entry.name.len(), 0);
            }
        }
        Ok(bytes)
    }
}

fn padded(name_len: usize) -> usize {
    name_len.next_multiple_of(4)
}

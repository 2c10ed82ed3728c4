//! Where each directory's listing lies, and what is in it: an inode and a name for each entry.
//!
//! Listings stand breadth first, the root's behind the superblock, where kernels look for it. Entries are in byte order.

use crate::disk::*;
use packfs_core::{Error, NodeId, Result, Tree};
use std::collections::HashMap;

/// The listings of a tree.
pub(super) struct Listings {
    /// Directories in the order of their listings.
    dirs: Vec<NodeId>,
    /// Where each one's listing starts, and how long it is.
    places: HashMap<NodeId, (u64, u32)>,
    /// Where they end.
    pub end: u64,
}

impl Listings {
    /// Places listings from `start` on.
    ///
    /// Errors: `Failed` for a directory of 16 MiB, and for more than 256 MiB in all.
    pub(super) fn place(tree: &Tree, start: u64) -> Result<Self> {
        let mut dirs = vec![NodeId::ROOT];
        let mut places = HashMap::new();
        let mut end = start;
        let mut next = 0;
        while let Some(&dir) = dirs.get(next) {
            let mut len = 0_u64;
            for entry in tree.entries(dir) {
                len += u64::from(INODE_LEN) + padded(entry.name.len()) as u64;
                if tree.node(entry.node).is_dir() {
                    dirs.push(entry.node);
                }
            }
            if len >= SIZE_END {
                let message = format!(
                    "{:?} needs {len} bytes for its entries, cramfs holds at most {} bytes in a directory",
                    tree.path(dir),
                    SIZE_END - 1
                );
                return Err(Error::failed(message));
            }
            let start = if len == 0 { 0 } else { end };
            places.insert(dir, (start, len as u32));
            end += len;
            next += 1;
        }
        if end > OFFSET_END {
            return Err(super::layout::too_large());
        }
        Ok(Listings { dirs, places, end })
    }

    /// A directory's listing: where it starts (0 if it is empty), and its length.
    pub(super) fn of(&self, dir: NodeId) -> (u64, u32) {
        self.places.get(&dir).copied().unwrap_or_default()
    }

    /// All listings, with the inode of each node.
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

/// Length of a name with its padding.
fn padded(name_len: usize) -> usize {
    name_len.next_multiple_of(4)
}

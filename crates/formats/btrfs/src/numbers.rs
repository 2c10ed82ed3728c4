//! Inode ids: index of the tree, then inode number.

use crate::tree::Tree;
use packfs_format::InodeId;
use std::collections::HashMap;

/// Bits of the inode number in an id.
pub(crate) const INODE_BITS: u32 = 40;
/// Limit of the trees, and of the directories without an inode.
pub(crate) const ROWS_MAX: usize = 1 << 20;
/// Flag in ids of directories without an inode.
pub(crate) const EMPTY: u64 = 1 << 62;
/// Inode number that Linux shows for a subvolume outside this tree.
pub(crate) const EMPTY_NUMBER: u64 = 2;

#[derive(Default)]
pub(crate) struct Numbers {
    /// Trees in the order of their discovery; the opened one first.
    pub(crate) trees: Vec<Tree>,
    by_id: HashMap<u64, u32>,
    /// Parents of the directories that replace subvolumes of other trees.
    pub(crate) empty: Vec<InodeId>,
    by_entry: HashMap<(u32, u64), u64>,
}

impl Numbers {
    /// Returns the index of a tree, added if it is new; `None` if the table is full.
    pub(crate) fn index_of(&mut self, tree: Tree) -> Option<u32> {
        if let Some(index) = self.by_id.get(&tree.id) {
            return Some(*index);
        }
        let index = u32::try_from(self.trees.len()).ok().filter(|_| self.trees.len() < ROWS_MAX)?;
        self.by_id.insert(tree.id, index);
        self.trees.push(tree);
        Some(index)
    }

    /// Returns the id of a directory that replaces a subvolume of another tree; `None` if the table
    /// is full.
    pub(crate) fn empty_id(&mut self, index: u32, child: u64, dir: InodeId) -> Option<InodeId> {
        if let Some(row) = self.by_entry.get(&(index, child)) {
            return Some(InodeId(EMPTY | row));
        }
        let row = self.empty.len();
        if row >= ROWS_MAX {
            return None;
        }
        self.empty.push(dir);
        self.by_entry.insert((index, child), row as u64);
        Some(InodeId(EMPTY | row as u64))
    }
}

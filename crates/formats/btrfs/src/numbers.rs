//! Ids of inodes: the number of their tree, then their own.

use crate::tree::Tree;
use packfs_format::InodeId;
use std::collections::HashMap;

/// Bits of inode numbers in an id.
pub(crate) const INODE_BITS: u32 = 40;
/// Trees and directories without an inode, at most.
pub(crate) const ROWS_MAX: usize = 1 << 20;
/// Set in the ids of directories without an inode.
pub(crate) const EMPTY: u64 = 1 << 62;
/// Inode number that Linux shows for a subvolume that has none of its own here.
pub(crate) const EMPTY_NUMBER: u64 = 2;

/// Numbers that ids are made of.
#[derive(Default)]
pub(crate) struct Numbers {
    /// Trees in the order in which they were met; the opened one first.
    pub(crate) trees: Vec<Tree>,
    by_id: HashMap<u64, u32>,
    /// Directories that stand for subvolumes elsewhere: the directory around each.
    pub(crate) empty: Vec<InodeId>,
    by_entry: HashMap<(u32, u64), u64>,
}

impl Numbers {
    /// Returns the number of a tree; `None` if there are too many.
    pub(crate) fn index_of(&mut self, tree: Tree) -> Option<u32> {
        if let Some(index) = self.by_id.get(&tree.id) {
            return Some(*index);
        }
        let index = u32::try_from(self.trees.len()).ok().filter(|_| self.trees.len() < ROWS_MAX)?;
        self.by_id.insert(tree.id, index);
        self.trees.push(tree);
        Some(index)
    }

    /// Returns the id of a directory that stands for a subvolume elsewhere; `None` if there are too
    /// many.
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

//! The order in which inodes are written, and the inode numbers that follow from it.
//!
//! A listing names the places of its inodes, and a directory's inode the place of its listing, so
//! whatever is in a directory comes before it. Otherwise the order is that of a walk along the
//! tree, which so reads most blocks of inodes once. Numbers follow that order, so they are small
//! differences in listings.

use packfs_core::{NodeId, Tree};

/// A number for each node of a tree.
pub(crate) struct Numbering {
    /// Inode number of each node, from 1.
    pub(crate) numbers: Vec<u32>,
}

impl Numbering {
    /// Numbers all nodes of a tree.
    pub(crate) fn new(tree: &Tree) -> Self {
        let mut numbers = vec![0; tree.node_count() as usize];
        let mut next = 1;
        let mut number = |id: NodeId| {
            // A file with several names is written with its first.
            if numbers[id.index()] == 0 {
                numbers[id.index()] = next;
                next += 1;
            }
        };
        let mut open = vec![(NodeId::ROOT, tree.entries(NodeId::ROOT))];
        while let Some((dir, entries)) = open.last_mut() {
            match entries.next().map(|entry| entry.node) {
                Some(child) if tree.node(child).is_dir() => open.push((child, tree.entries(child))),
                Some(child) => number(child),
                None => {
                    number(*dir);
                    open.pop();
                }
            }
        }
        Numbering { numbers }
    }

    /// The inode number of a node.
    pub(crate) fn number(&self, id: NodeId) -> u32 {
        self.numbers[id.index()]
    }
}

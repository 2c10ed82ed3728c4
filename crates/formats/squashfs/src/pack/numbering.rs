//! The order in which inodes and listings are written, and the inode numbers that follow from it.
//!
//! A listing names the places of its inodes, and a directory's inode the place of its listing, so
//! subdirectories come first. All inodes of one directory's entries stand together, in the order of
//! their names: a reader that lists and stats a directory decodes them in a row. Numbers follow
//! that order, so they are small differences in listings.

use packfs_core::{NodeId, Tree};

/// The order of a tree's directories, and a number for each of its nodes.
pub(crate) struct Numbering {
    /// Directories, subdirectories before their parents, the root last.
    pub(crate) dirs: Vec<NodeId>,
    /// Inode number of each node, from 1.
    pub(crate) numbers: Vec<u32>,
}

impl Numbering {
    /// Numbers all nodes of a tree.
    pub(crate) fn new(tree: &Tree) -> Self {
        let dirs = post_order(tree);
        let mut numbers = vec![0; tree.node_count() as usize];
        let mut next = 1;
        for &dir in &dirs {
            for entry in tree.entries(dir) {
                // A file with several names is written with its first.
                if numbers[entry.node.index()] == 0 {
                    numbers[entry.node.index()] = next;
                    next += 1;
                }
            }
        }
        numbers[NodeId::ROOT.index()] = next;
        Numbering { dirs, numbers }
    }

    /// The inode number of a node.
    pub(crate) fn number(&self, id: NodeId) -> u32 {
        self.numbers[id.index()]
    }
}

fn post_order(tree: &Tree) -> Vec<NodeId> {
    let subdirs = |dir: NodeId| {
        let children = tree.entries(dir).map(|entry| entry.node);
        children.filter(|&child| tree.node(child).is_dir()).collect::<Vec<_>>().into_iter()
    };
    let mut order = Vec::new();
    let mut open = vec![(NodeId::ROOT, subdirs(NodeId::ROOT))];
    while let Some((dir, children)) = open.last_mut() {
        match children.next() {
            Some(child) => open.push((child, subdirs(child))),
            None => {
                order.push(*dir);
                open.pop();
            }
        }
    }
    order
}

//! Order of inodes, and the inode numbers that follow from it.
//!
//! A listing contains references to inodes, and a directory's inode the position of its listing, so
//! a directory follows its contents. Otherwise the order is that of a walk, which then reads most
//! blocks of inodes once. Numbers follow the order, so they are small differences in listings.

use packfs_core::{NodeId, Tree};

pub(crate) struct Numbering {
    /// By node, starting at 1.
    pub(crate) numbers: Vec<u32>,
}

impl Numbering {
    pub(crate) fn new(tree: &Tree) -> Self {
        let mut numbers = vec![0; tree.node_count() as usize];
        let mut next = 1;
        let mut number = |id: NodeId| {
            // Hard links are written with the first name.
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

    pub(crate) fn number(&self, id: NodeId) -> u32 {
        self.numbers[id.index()]
    }
}

//! Origin of every node in the inputs, and the node of every linked inode.
//!
//! A tree may have many millions of nodes: a row has 8 bytes, and the table by inode 5 for each
//! slot.

use hashbrown::HashTable;
use packfs_core::BuildId;
use packfs_format::InodeId;
use std::hash::{BuildHasher, RandomState};

// Of the number that images state.
const EXPECTED_MAX: u64 = 1 << 20;

pub(super) struct Sources {
    rows: Rows,
    linked: HashTable<BuildId>,
    hashing: RandomState,
}

/// Rows in the order of building.
#[derive(Default)]
pub(super) struct Rows {
    inodes: Vec<InodeId>,
    runs: Vec<(usize, u32)>,
}

impl Rows {
    pub(super) fn get(&self, index: usize) -> Option<(u32, InodeId)> {
        let run = self.runs.partition_point(|run| run.0 <= index).checked_sub(1)?;
        Some((self.runs.get(run)?.1, *self.inodes.get(index)?))
    }

    fn push(&mut self, input: u32, inode: InodeId) {
        if self.runs.last().is_none_or(|last| last.1 != input) {
            self.runs.push((self.inodes.len(), input));
        }
        self.inodes.push(inode);
    }
}

impl Sources {
    pub(super) fn new(expected: u64) -> Self {
        let linked = HashTable::with_capacity(expected.min(EXPECTED_MAX) as usize);
        Sources { rows: Rows::default(), linked, hashing: RandomState::new() }
    }

    pub(super) fn find(&self, source: (u32, InodeId)) -> Option<BuildId> {
        let is_source = |build: &BuildId| self.rows.get(build.index()) == Some(source);
        self.linked.find(self.hashing.hash_one(source), is_source).copied()
    }

    pub(super) fn push(&mut self, source: (u32, InodeId)) {
        self.rows.push(source.0, source.1);
    }

    /// Later names of the inode refer to this node, which has a row.
    pub(super) fn link(&mut self, build: BuildId) {
        let Sources { rows, linked, hashing } = self;
        let hash = |build: &BuildId| rows.get(build.index()).map_or(0, |source| hashing.hash_one(source));
        linked.insert_unique(hash(&build), build, hash);
    }

    /// Drops the table by inode.
    pub(super) fn into_rows(self) -> Rows {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{Meta, Name, NodeKind, TreeBuilder, Xattrs};

    #[test]
    fn nodes_are_found_by_input_and_inode() {
        let mut tree = TreeBuilder::new(Meta::default());
        let mut sources = Sources::new(1000);
        sources.push((0, InodeId(0)));
        let mut builds = Vec::new();
        let source = |index: u64| ((index / 700) as u32, InodeId(index % 700));
        for index in 0..2000 {
            let name = index.to_string();
            let name = Name::new(name.as_bytes()).unwrap();
            assert_eq!(sources.find(source(index)), None);
            sources.push(source(index));
            let build = tree.add_child(BuildId::ROOT, name, NodeKind::Fifo, Meta::default(), Xattrs::new());
            sources.link(build);
            builds.push(build);
        }
        for (index, build) in (0..).zip(builds) {
            assert_eq!(sources.find(source(index)), Some(build));
            assert_eq!(sources.rows.get(build.index()), Some(source(index)));
        }
        assert_eq!(sources.find((3, InodeId(1))), None);
        assert_eq!(sources.into_rows().get(5000), None);
    }
}

//! Completes a [`Tree`]: numbers nodes depth first, sorts names, counts links.
//!
//! Nodes and names are permuted in place, so that a tree of millions of nodes never exists twice.

use super::BuildId;
use super::entries::{Chains, Entries};
use crate::tree::{DirRow, EntryRow};
use crate::{Node, NodeId, Tree, Xattrs};
use std::ops::Range;

const UNNUMBERED: u32 = u32::MAX;

/// Also returns the build id of each node.
pub(super) fn freeze(
    mut nodes: Vec<Node>,
    entries: Entries,
    xattr_sets: Vec<Xattrs>,
) -> (Tree, Vec<BuildId>) {
    let (mut names, chains) = entries.into_chains();
    let mut rows = Rows { entries: Vec::with_capacity(chains.len()), dirs: Vec::new() };
    let (builds, numbers) = number(&mut nodes, &names, &chains, &mut rows);
    drop(chains);
    let Rows { mut entries, mut dirs } = rows;
    arrange(&mut nodes, numbers);
    // Nodes that were replaced, or were below such a node.
    nodes.truncate(builds.len());
    nodes.shrink_to_fit();
    entries.shrink_to_fit();
    dirs.shrink_to_fit();
    names.shrink_to_fit();
    (Tree { nodes, entries, names, dirs, xattr_sets }, builds)
}

struct Rows {
    entries: Vec<EntryRow>,
    dirs: Vec<DirRow>,
}

impl Rows {
    /// The rows contain build ids until their nodes are numbered.
    fn open_dir(&mut self, dir: NodeId, build: BuildId, names: &[u8], chains: &Chains) -> Range<usize> {
        let start = self.entries.len();
        self.entries
            .extend(chains.of(build).map(|named| EntryRow { name: named.name, node: NodeId(named.node.0) }));
        let rows = &mut self.entries[start..];
        rows.sort_unstable_by(|a, b| a.name.of(names).cmp(b.name.of(names)));
        let end = self.entries.len();
        self.dirs.push(DirRow { node: dir, entries_start: start as u32, entries_end: end as u32 });
        start..end
    }
}

/// Numbers all nodes reachable from the root, and sets the fields that depend on the numbers.
/// Returns the build id of each number, and the number of each build id; unreachable nodes come
/// last.
fn number(nodes: &mut [Node], names: &[u8], chains: &Chains, rows: &mut Rows) -> (Vec<BuildId>, Vec<u32>) {
    let mut numbers = vec![UNNUMBERED; nodes.len()];
    let mut builds = Vec::with_capacity(nodes.len());
    numbers[0] = 0;
    builds.push(BuildId::ROOT);
    nodes[0].links = 2;
    // Directories whose entries are being numbered, from the root down, with their remaining
    // entries.
    let mut open = vec![(NodeId::ROOT, rows.open_dir(NodeId::ROOT, BuildId::ROOT, names, chains))];
    while let Some((dir, entries)) = open.last_mut() {
        let dir = *dir;
        let Some(entry) = entries.next() else {
            open.pop();
            continue;
        };
        let build = BuildId(rows.entries[entry].node.0);
        let node = &mut nodes[build.index()];
        let number = numbers[build.index()];
        if number != UNNUMBERED {
            rows.entries[entry].node = NodeId(number);
            node.links += 1;
            continue;
        }
        let id = NodeId(builds.len() as u32);
        numbers[build.index()] = id.0;
        builds.push(build);
        rows.entries[entry].node = id;
        let is_dir = node.is_dir();
        (node.parent, node.first_entry) = (dir, entry as u32);
        node.links = if is_dir { 2 } else { 1 };
        if is_dir {
            nodes[builds[dir.index()].index()].links += 1;
            open.push((id, rows.open_dir(id, build, names, chains)));
        }
    }
    let unnumbered = numbers.iter_mut().filter(|number| **number == UNNUMBERED);
    for (number, next) in unnumbered.zip(builds.len() as u32..) {
        *number = next;
    }
    (builds, numbers)
}

/// Permutes items in place; `numbers` is a permutation.
fn arrange<T>(items: &mut [T], mut numbers: Vec<u32>) {
    for index in 0..items.len() {
        // Each swap moves one item to its final index.
        while numbers[index] as usize != index {
            let to = numbers[index] as usize;
            items.swap(index, to);
            numbers.swap(index, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arranging_brings_everything_to_its_place() {
        let numbers = [3, 0, 2, 4, 1, 5];
        let mut items = numbers.map(|number| format!("to {number}"));
        arrange(&mut items, numbers.to_vec());
        assert_eq!(items, [0, 1, 2, 3, 4, 5].map(|number| format!("to {number}")));
    }
}

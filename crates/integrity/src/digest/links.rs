use super::record::Record;
use packfs_core::{ImagePath, NodeId, Tree};
use std::collections::HashMap;

/// Sorted by path in byte order.
pub(super) struct LinkedNames(Vec<(Vec<u8>, NodeId)>);

impl LinkedNames {
    pub(super) fn of(tree: &Tree) -> Self {
        let mut names = Vec::new();
        let is_linked = |node: NodeId| !tree.node(node).is_dir() && tree.node(node).links > 1;
        if tree.nodes().any(|(id, _)| is_linked(id)) {
            let mut walk = tree.walk();
            while let Some((path, node)) = walk.next() {
                if is_linked(node) {
                    names.push((path.as_bytes().to_vec(), node));
                }
            }
        }
        names.sort_unstable();
        LinkedNames(names)
    }

    /// Groups of two or more names below `dir`, by the first name of each; paths are relative to
    /// `dir`.
    pub(super) fn write(&self, dir: &ImagePath, record: &mut Record) {
        let mut prefix = dir.as_bytes().to_vec();
        if !dir.is_root() {
            prefix.push(b'/');
        }
        let start = self.0.partition_point(|(path, _)| path.as_slice() < prefix.as_slice());
        let below = self.0[start..].iter().take_while(|(path, _)| path.starts_with(&prefix));
        let mut groups: Vec<Vec<&[u8]>> = Vec::new();
        let mut group_of = HashMap::new();
        for (path, node) in below {
            let group = *group_of.entry(*node).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push(&path[prefix.len()..]);
        }
        groups.retain(|names| names.len() > 1);
        record.number(groups.len() as u64);
        for names in groups {
            record.number(names.len() as u64);
            for name in names {
                record.text(name);
            }
        }
    }
}

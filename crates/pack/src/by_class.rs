//! Space that each class of files takes in the image.

use crate::class::Class;
use packfs_core::NodeId;
use std::collections::BTreeMap;

/// Class of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ClassRow {
    /// Name of the class.
    pub class: Class,
    /// Number of files, without those that share all their data with another.
    pub files: u64,
    /// Total length, in bytes.
    pub bytes: u64,
    /// Bytes in the image; a block shared by several files is divided by their parts in it.
    #[cfg_attr(feature = "serde", serde(rename = "stored_bytes"))]
    pub stored: u64,
}

#[derive(Default)]
pub(crate) struct Classes {
    pub rows: Vec<ClassRow>,
    /// Bytes in shared blocks, before compression.
    pub shared_bytes: u64,
    /// Space of each node, if it is wanted.
    pub nodes: Vec<u64>,
}

#[derive(Default)]
struct Sum {
    files: u64,
    bytes: u64,
    stored: u64,
}

struct Part {
    offset: u64,
    len: u64,
    class: Class,
    node: NodeId,
}

#[derive(Default)]
pub(crate) struct ByClass {
    sums: BTreeMap<Class, Sum>,
    parts: Vec<Part>,
    nodes: Vec<u64>,
}

impl ByClass {
    /// `count` 0: by class alone.
    pub(crate) fn of_nodes(count: usize) -> Self {
        ByClass { nodes: vec![0; count], ..ByClass::default() }
    }

    /// `stored`: bytes in the image that belong to this piece alone.
    pub(crate) fn add(&mut self, (node, class): (NodeId, Class), is_last: bool, bytes: u64, stored: u64) {
        let sum = self.sums.entry(class).or_default();
        sum.files += u64::from(is_last);
        sum.bytes = sum.bytes.saturating_add(bytes);
        sum.stored += stored;
        self.add_to_node(node, stored);
    }

    fn add_to_node(&mut self, node: NodeId, stored: u64) {
        if let Some(space) = self.nodes.get_mut(node.index()) {
            *space += stored;
        }
    }

    pub(crate) fn add_shared(&mut self, (node, class): (NodeId, Class), offset: u64, len: u64) {
        let node = if self.nodes.is_empty() { NodeId::ROOT } else { node };
        // Similar files are adjacent and may be millions, so adjacent parts are merged.
        if let Some(last) = self.parts.last_mut()
            && (last.node, last.class) == (node, class)
            && last.offset + last.len == offset
        {
            last.len += len;
            return;
        }
        self.parts.push(Part { offset, len, class, node });
    }

    /// `shared` yields input and stored length of each run, in stream order.
    pub(crate) fn finish(mut self, shared: impl Iterator<Item = (u64, u64)>) -> Classes {
        let shared_bytes = self.parts.iter().map(|part| part.len).sum();
        self.parts.sort_by_key(|part| part.offset);
        let parts = std::mem::take(&mut self.parts);
        let mut parts = parts.iter().peekable();
        let mut start = 0;
        for (len, stored) in shared {
            let end = start + len;
            while let Some(part) = parts.peek() {
                let part_end = part.offset + part.len;
                let inside = part_end.min(end).saturating_sub(part.offset.max(start));
                if inside > 0 {
                    let share = u128::from(stored) * u128::from(inside) / u128::from(len);
                    self.sums.entry(part.class).or_default().stored += share as u64;
                    self.add_to_node(part.node, share as u64);
                }
                if part_end > end {
                    break;
                }
                parts.next();
            }
            start = end;
        }
        let row = |(class, sum): (Class, Sum)| ClassRow {
            class,
            files: sum.files,
            bytes: sum.bytes,
            stored: sum.stored,
        };
        let mut rows: Vec<ClassRow> = self.sums.into_iter().map(row).collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.stored), row.class));
        Classes { rows, shared_bytes, nodes: self.nodes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divides_what_is_shared_by_what_lies_in_it() {
        let mut sums = ByClass::of_nodes(3);
        sums.add((NodeId(1), Class::Text), true, 150, 0);
        sums.add((NodeId(2), Class::Font), false, 1000, 900);
        sums.add((NodeId(2), Class::Font), true, 50, 0);
        sums.add_shared((NodeId(1), Class::Text), 0, 150);
        sums.add_shared((NodeId(2), Class::Font), 150, 50);
        // The first run is all text, as is the second half of each.
        let rows = sums.finish([(100, 40), (100, 60)].into_iter());
        let row = |class, files, bytes, stored| ClassRow { class, files, bytes, stored };
        assert_eq!(rows.shared_bytes, 200);
        assert_eq!(rows.nodes, [0, 70, 930]);
        assert_eq!(rows.rows, [row(Class::Font, 1, 1050, 930), row(Class::Text, 1, 150, 70)]);
    }

    #[test]
    fn nothing_shared_is_nothing_divided() {
        assert!(ByClass::default().finish([(10, 5)].into_iter()).rows.is_empty());
    }
}

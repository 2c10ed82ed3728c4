//! Files of the new tree, by the input that stores them.

use crate::scan::Scanned;
use packfs_core::{Error, Limit, Limits, NodeId, NodeKind, Result};
use packfs_format::InodeId;

/// Omits empty files; those of each input are adjacent and in tree order.
pub(crate) struct ByInput {
    nodes: Vec<NodeId>,
    ends: Vec<usize>,
}

impl ByInput {
    pub(crate) fn new(scanned: &Scanned, input_count: usize) -> Self {
        let mut counts = vec![0_usize; input_count];
        each_file(scanned, |_, input| {
            if let Some(count) = counts.get_mut(input) {
                *count += 1;
            }
        });
        let mut next = Vec::with_capacity(input_count);
        let mut total = 0;
        for count in counts {
            next.push(total);
            total += count;
        }
        let mut nodes = vec![NodeId::ROOT; total];
        each_file(scanned, |node, input| {
            if let Some(at) = next.get_mut(input) {
                if let Some(slot) = nodes.get_mut(*at) {
                    *slot = node;
                }
                *at += 1;
            }
        });
        ByInput { nodes, ends: next }
    }

    pub(crate) fn of(&self, input: usize) -> &[NodeId] {
        let start = input.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(input).copied().unwrap_or(start);
        self.nodes.get(start..end).unwrap_or_default()
    }
}

fn each_file(scanned: &Scanned, mut visit: impl FnMut(NodeId, usize)) {
    for (id, node) in scanned.tree.nodes() {
        if let NodeKind::File { len: 1.., content } = node.kind
            && let Some((input, _)) = scanned.source(content)
        {
            visit(id, input);
        }
    }
}

pub(crate) fn inode_of(scanned: &Scanned, node: NodeId) -> Result<InodeId> {
    let found = match scanned.tree.node(node).kind {
        NodeKind::File { content, .. } => scanned.source(content),
        _ => None,
    };
    found.map(|(_, inode)| inode).ok_or_else(|| Error::failed("internal: a file without an inode"))
}

/// Enforces the memory limit for metadata.
pub(crate) fn check_rows<T>(limits: &Limits, rows: &[T]) -> Result<()> {
    let len = (rows.len() as u64).saturating_mul(size_of::<T>() as u64);
    limits.check("merged images", Limit::Memory, len)
}

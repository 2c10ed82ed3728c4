//! Candidate files of the base for each source file: by path, else by name and length.
//!
//! A wrong candidate is no error: contents are compared, unless the caller trusts times.

use super::{Base, Proof};
use crate::context::Context;
use packfs_core::{NodeId, NodeKind};
use packfs_format::{DataKind, InodeId};
use std::collections::HashMap;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Match {
    pub id: InodeId,
    pub len: u64,
    pub trust: Trust,
}

/// Comparison still required before blocks are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    Neither,
    Same,
    Blind,
}

pub(crate) struct Matches(Vec<Option<Match>>);

impl Matches {
    pub(crate) fn find<K: DataKind>(base: &Base, context: &Context<'_, K>) -> Self {
        match base.proof {
            Proof::Contents => Matches(by_path(base, context, false)),
            Proof::Times => Matches(by_path(base, context, true)),
            Proof::Source => Matches(by_content(context, Trust::Same)),
            Proof::SourceUnread => Matches(by_content(context, Trust::Blind)),
        }
    }

    pub(crate) fn of(&self, node: NodeId) -> Option<Match> {
        self.0.get(node.index()).copied().flatten()
    }
}

/// Matches files by inode, because the source is the base itself.
fn by_content<K: DataKind>(context: &Context<'_, K>, trust: Trust) -> Vec<Option<Match>> {
    let row = |kind: &NodeKind| match *kind {
        NodeKind::File { len, content } => Some(Match { id: InodeId(content.0), len, trust }),
        _ => None,
    };
    context.tree.nodes().map(|(_, node)| row(&node.kind)).collect()
}

fn by_path<K: DataKind>(base: &Base, context: &Context<'_, K>, times: bool) -> Vec<Option<Match>> {
    let tree = context.tree;
    // The node of the base with the same path; parents come before their children.
    let mut same_path: Vec<Option<NodeId>> = Vec::with_capacity(tree.node_count() as usize);
    for (id, node) in tree.nodes() {
        let found = match id {
            NodeId::ROOT => Some(NodeId::ROOT),
            _ => {
                let parent = same_path.get(node.parent().index()).copied().flatten();
                parent.and_then(|parent| base.tree.lookup(parent, tree.first_name(id)))
            }
        };
        same_path.push(found);
    }
    let mut moved = None;
    let mut rows = vec![None; tree.node_count() as usize];
    for job in &context.plan.files {
        let len = context.len(job.node);
        let named = same_path[job.node.index()].filter(|&node| file_len(base, node).is_some());
        let found = named.or_else(|| {
            let moved = moved.get_or_insert_with(|| by_name(base));
            moved.get(&(tree.first_name(job.node), len)).copied()
        });
        rows[job.node.index()] = found.and_then(|found| {
            let is_trusted = times && named.is_some() && is_same_time(base, found, context, job.node);
            let trust = if is_trusted { Trust::Blind } else { Trust::Neither };
            Some(Match { id: *base.inodes.get(found.index())?, len: file_len(base, found)?, trust })
        });
    }
    rows
}

/// Files of the base by name and length; the first in tree order wins.
fn by_name(base: &Base) -> HashMap<(&[u8], u64), NodeId> {
    let mut files = HashMap::new();
    for (id, node) in base.tree.nodes() {
        if let NodeKind::File { len, .. } = node.kind {
            files.entry((base.tree.first_name(id), len)).or_insert(id);
        }
    }
    files
}

fn file_len(base: &Base, node: NodeId) -> Option<u64> {
    match base.tree.node(node).kind {
        NodeKind::File { len, .. } => Some(len),
        _ => None,
    }
}

/// Returns true if length and time are the same. A base with whole seconds is compared in seconds.
fn is_same_time<K: DataKind>(base: &Base, old: NodeId, context: &Context<'_, K>, new: NodeId) -> bool {
    let (was, is) = (base.tree.node(old).meta.mtime, context.tree.node(new).meta.mtime);
    file_len(base, old) == Some(context.len(new))
        && was.seconds == is.seconds
        && (was.nanos == is.nanos || was.nanos == 0)
}

//! Hashes the contents of all files of a tree, on all CPUs.

use super::content::{CHUNK_LEN, ContentFold, Hash, sha256};
use crate::ordered;
use packfs_core::{ContentId, Contents, Error, NodeId, NodeKind, Progress, Result, Tree};
use std::collections::VecDeque;
use std::ops::Range;

struct Part {
    node: NodeId,
    content: ContentId,
    index: u64,
    range: Range<u64>,
}

/// Digests by node; those of other nodes are meaningless.
///
/// Errors: the first read error in the order of nodes, which names the path; `Cancelled`.
pub(super) fn contents(
    tree: &Tree,
    contents: &dyn Contents,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Vec<Hash>> {
    let mut hashes = vec![Hash::default(); tree.node_count() as usize];
    let mut open: Option<(NodeId, ContentFold)> = None;
    let parts = Parts { tree, contents, next_node: 0, current: None, ready: VecDeque::new() };
    let at = |node: NodeId, error: Error| match error.kind() {
        packfs_core::ErrorKind::Cancelled => error,
        _ => error.at(format!("{:?}", tree.path(node))),
    };
    let hash = |buf: &mut Vec<u8>, part: &Part| {
        let len = (part.range.end - part.range.start) as usize;
        buf.resize(buf.len().max(len), 0);
        let mut reader = contents.open(part.content).map_err(|error| at(part.node, error))?;
        reader.read_exact_at(part.range.start, &mut buf[..len]).map_err(|error| at(part.node, error))?;
        progress.advance(0, len as u64, 0);
        Ok(sha256(&buf[..len]))
    };
    ordered::in_order(jobs, parts, progress, Vec::new, hash, &mut |part, hash| {
        if let Some((node, fold)) = open.take_if(|(node, _)| *node != part.node) {
            hashes[node.index()] = fold.finish();
        }
        let (_, fold) = open.get_or_insert_with(|| (part.node, ContentFold::new(len(tree, part.node))));
        fold.chunk(part.index, &hash);
        Ok(())
    })?;
    if let Some((node, fold)) = open {
        hashes[node.index()] = fold.finish();
    }
    // Files without data: empty ones, and those that are one hole.
    let mut holes = ContentHoles::default();
    for (id, node) in tree.nodes() {
        if let NodeKind::File { len, .. } = node.kind
            && hashes[id.index()] == Hash::default()
        {
            hashes[id.index()] = holes.hash(len);
        }
    }
    Ok(hashes)
}

fn len(tree: &Tree, node: NodeId) -> u64 {
    match tree.node(node).kind {
        NodeKind::File { len, .. } => len,
        _ => 0,
    }
}

#[derive(Default)]
struct ContentHoles(Option<(u64, Hash)>);

impl ContentHoles {
    fn hash(&mut self, len: u64) -> Hash {
        match self.0 {
            Some((known, hash)) if known == len => hash,
            _ => {
                let hash = if len == 0 { sha256(b"") } else { ContentFold::new(len).finish() };
                self.0 = Some((len, hash));
                hash
            }
        }
    }
}

struct Parts<'a> {
    tree: &'a Tree,
    contents: &'a dyn Contents,
    next_node: u32,
    /// Position in a file of several chunks.
    current: Option<(NodeId, ContentId, u64)>,
    ready: VecDeque<Part>,
}

impl Iterator for Parts<'_> {
    type Item = Result<Part>;

    fn next(&mut self) -> Option<Result<Part>> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Some(Ok(part));
            }
            if let Some((node, content, from)) = self.current.take() {
                if let Err(error) = self.find_data(node, content, from) {
                    return Some(Err(error.at(format!("{:?}", self.tree.path(node)))));
                }
                continue;
            }
            if self.next_node == self.tree.node_count() {
                return None;
            }
            let node = NodeId(self.next_node);
            self.next_node += 1;
            match self.tree.node(node).kind {
                NodeKind::File { len: 0, .. } => {}
                NodeKind::File { len, content } if len <= CHUNK_LEN => {
                    return Some(Ok(Part { node, content, index: 0, range: 0..len }));
                }
                NodeKind::File { content, .. } => self.current = Some((node, content, 0)),
                _ => {}
            }
        }
    }
}

/// Chunks that are searched at a time.
const CHUNKS_AT_ONCE: u64 = 64;

impl Parts<'_> {
    /// `from` is the beginning of a chunk.
    fn find_data(&mut self, node: NodeId, content: ContentId, from: u64) -> Result<()> {
        let len = len(self.tree, node);
        if from >= len {
            return Ok(());
        }
        let Some(data) = self.contents.open(content)?.next_data(from)? else { return Ok(()) };
        let first = data.start.max(from) / CHUNK_LEN;
        let end = data.end.min(len).div_ceil(CHUNK_LEN).min(first + CHUNKS_AT_ONCE);
        for index in first..end {
            let start = index * CHUNK_LEN;
            let range = start..len.min(start.saturating_add(CHUNK_LEN));
            self.ready.push_back(Part { node, content, index, range });
        }
        // An empty run would be requested forever.
        if first < end {
            self.current = Some((node, content, end.saturating_mul(CHUNK_LEN)));
        }
        Ok(())
    }
}

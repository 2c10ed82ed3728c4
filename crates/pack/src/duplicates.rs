//! Finds duplicate files before any of them is compressed.
//!
//! Only files with blocks of their own are compared here; whole files that fit into a shared block
//! are compared as tails while they are read. A file is read only if another has its length,
//! completely only if the beginnings agree, and is a duplicate only if every byte agrees.

use crate::PackOptions;
use crate::context::{Context, Kind};
use crate::digest_log::DigestLog;
use crate::failures::Failures;
use crate::parallel::read_in_parallel;
use packfs_core::Owner;
use packfs_core::{ContentDigest, ContentHash, ContentHasher, Error, NodeId, Progress, Result, Stage};
use packfs_format::{DataKind, FilePlace, PackFormat, Placed};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// Bytes of a file's beginning that are hashed first.
const BEGINNING_LEN: u64 = 16 << 10;
const READ_LEN: usize = 256 << 10;

#[derive(Default)]
pub(crate) struct Duplicates {
    originals: HashMap<NodeId, NodeId>,
    hashes: HashMap<NodeId, ContentHash>,
}

impl Duplicates {
    /// The first equal file of the plan, unless another one must not be compressed; `None` for that
    /// file itself.
    pub(crate) fn original(&self, node: NodeId) -> Option<NodeId> {
        self.originals.get(&node).copied()
    }

    /// Gives each duplicate the digest that its original had when it was packed.
    ///
    /// Errors: `Failed` for an original that changed since it was compared: the duplicate may not
    /// have changed with it.
    pub(crate) fn check_unchanged<K: DataKind>(
        &self,
        context: &Context<'_, K>,
        digests: &mut DigestLog,
    ) -> Result<()> {
        for (&original, &before) in &self.hashes {
            if matches!(digests.of(original), ContentDigest::Hash(now) if now != before) {
                let path = context.tree.path(original);
                let error = Error::failed(format!("cannot pack {path:?}: it changed during packing"));
                return Err(error.hint("pack a snapshot, or stop the program that writes to it"));
            }
        }
        for (&later, &original) in &self.originals {
            digests.same(later, original);
        }
        Ok(())
    }

    /// Returns the first byte of a file that is stored; its length if none is.
    pub(crate) fn stored_from(&self, node: NodeId, len: u64) -> u64 {
        if self.originals.contains_key(&node) { len } else { 0 }
    }

    /// Failed files are empty.
    pub(crate) fn place<K: DataKind>(
        &self,
        context: &Context<'_, K>,
        mut failures: Failures,
        progress: &dyn Progress,
        placed: &mut Placed<K>,
    ) -> Vec<String> {
        let failed: HashSet<NodeId> = failures.nodes.iter().copied().collect();
        for &node in &failures.nodes {
            placed.files[node.index()] = FilePlace::default();
        }
        for job in &context.plan.files {
            if let Some(original) = self.original(job.node) {
                placed.files[job.node.index()] = placed.files[original.index()];
                placed.duplicate_files += 1;
                placed.duplicate_bytes = placed.duplicate_bytes.saturating_add(context.len(job.node));
                progress.advance(1, context.len(job.node), 0);
                if failed.contains(&original) {
                    failures.nodes.push(job.node);
                }
            }
        }
        placed.failed = failures.nodes;
        placed.failed.sort_unstable();
        failures.messages
    }
}

/// Length of a file, and the other attributes in which files must agree to share data
/// ([`packfs_format::Capabilities::sharing_key`]).
type Likeness = (u64, Option<(u16, Owner)>);

/// An unreadable file counts as unique, if unreadable files are skipped.
pub(crate) fn find<K: Kind>(
    context: &Context<'_, K>,
    format: &dyn PackFormat,
    options: &PackOptions,
    progress: &dyn Progress,
) -> Result<Duplicates> {
    if !context.plan.dedupe {
        return Ok(Duplicates::default());
    }
    let alone = context.plan.files.iter().filter(|job| !context.is_compared_as_tail(job));
    let kind = |node: NodeId| -> Likeness {
        (context.len(node), format.capabilities().sharing_key(context.tree.node(node)))
    };
    let by_len = groups(alone.map(|job| (kind(job.node), job.node)));
    let same_len: Vec<NodeId> = by_len.into_iter().flatten().collect();
    progress.begin(Stage::Dedupe, same_len.len() as u64, 0);
    let flat = flat_files(context);
    let stored_once = stored_once(context, kind, &flat, &same_len);
    let same_len: Vec<NodeId> = same_len.into_iter().filter(|node| !stored_once.contains_key(node)).collect();

    let beginnings =
        read_in_parallel(options, progress, &same_len, |&node| hash(context, node, BEGINNING_LEN))?;
    let by_beginning = regroup(kind, &same_len, beginnings);
    let whole = read_in_parallel(options, progress, &by_beginning, |&node| hash(context, node, u64::MAX))?;
    let hashes: HashMap<NodeId, ContentHash> =
        by_beginning.iter().zip(whole).filter_map(|(&node, hash)| Some((node, hash?))).collect();
    let hashed = by_beginning.iter().filter_map(|node| Some((*node, hashes.get(node)?)));
    let mut by_hash = groups(hashed.map(|(node, hash)| ((kind(node), *hash), node)));
    // A file stored uncompressed represents all files with the same contents.
    by_hash.iter_mut().for_each(|group| group.sort_by_key(|node| !flat.contains(node)));
    let pairs: Vec<(NodeId, NodeId)> =
        by_hash.iter().flat_map(|group| group[1..].iter().map(|&later| (later, group[0]))).collect();
    let same = read_in_parallel(options, progress, &pairs, |&(a, b)| is_same(context, a, b))?;
    let same = pairs.into_iter().zip(same).filter(|(_, same)| *same == Some(true));
    let mut originals: HashMap<NodeId, NodeId> = same.map(|(pair, _)| pair).collect();
    for (later, first) in stored_once {
        originals.insert(later, originals.get(&first).copied().unwrap_or(first));
    }
    let hashes = originals.values().filter_map(|original| Some((*original, *hashes.get(original)?)));
    Ok(Duplicates { hashes: hashes.collect(), originals })
}

/// Returns the files whose bytes the source stores at the place of another file, each with that
/// file: snapshots and reflinks are not read to be found equal.
fn stored_once<K: DataKind>(
    context: &Context<'_, K>,
    kind: impl Fn(NodeId) -> Likeness,
    flat: &HashSet<NodeId>,
    nodes: &[NodeId],
) -> HashMap<NodeId, NodeId> {
    let placed = nodes.iter().filter_map(|&node| Some(((kind(node), context.place(node)?), node)));
    let mut same_place = groups(placed);
    same_place.iter_mut().for_each(|group| group.sort_by_key(|node| !flat.contains(node)));
    same_place.iter().flat_map(|group| group[1..].iter().map(|&later| (later, group[0]))).collect()
}

fn flat_files<K: Kind>(context: &Context<'_, K>) -> HashSet<NodeId> {
    let files = context.plan.files.iter().filter(|job| K::is_flat(job.storage));
    files.map(|job| job.node).collect()
}

/// Groups are in the order of their first members.
fn groups<K: Hash + Eq>(rows: impl Iterator<Item = (K, NodeId)>) -> Vec<Vec<NodeId>> {
    let mut index_of = HashMap::new();
    let mut groups: Vec<Vec<NodeId>> = Vec::new();
    for (key, node) in rows {
        let index = *index_of.entry(key).or_insert(groups.len());
        match groups.get_mut(index) {
            Some(group) => group.push(node),
            None => groups.push(vec![node]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

fn regroup(
    kind: impl Fn(NodeId) -> Likeness,
    nodes: &[NodeId],
    hashes: Vec<Option<ContentHash>>,
) -> Vec<NodeId> {
    let rows = nodes.iter().zip(hashes).filter_map(|(&node, hash)| Some(((kind(node), hash?), node)));
    groups(rows).into_iter().flatten().collect()
}

fn hash<K: DataKind>(context: &Context<'_, K>, node: NodeId, len_max: u64) -> Result<ContentHash> {
    let len = context.len(node).min(len_max);
    let mut reader = context.open(node)?;
    let mut hasher = ContentHasher::new(0);
    let mut buf = vec![0; READ_LEN.min(len as usize)];
    let mut offset = 0;
    while offset < len {
        // Holes are not read.
        let Some(data) = reader.next_data(offset)?.filter(|data| data.start < len) else { break };
        hasher.zeros(data.start.saturating_sub(offset));
        offset = offset.max(data.start);
        let part = &mut buf[..(len - offset).min(READ_LEN as u64) as usize];
        reader.read_exact_at(offset, part)?;
        hasher.bytes(part);
        offset += part.len() as u64;
    }
    Ok(hasher.finish())
}

fn is_same<K: DataKind>(context: &Context<'_, K>, a: NodeId, b: NodeId) -> Result<bool> {
    let len = context.len(a);
    let (mut reader_a, mut reader_b) = (context.open(a)?, context.open(b)?);
    let (mut buf_a, mut buf_b) = (vec![0; READ_LEN], vec![0; READ_LEN]);
    let mut offset = 0;
    while offset < len {
        let starts = [reader_a.next_data(offset)?, reader_b.next_data(offset)?]
            .map(|run| run.map_or(len, |r| r.start));
        offset = starts[0].min(starts[1]).max(offset);
        if offset >= len {
            break;
        }
        let part_len = (len - offset).min(READ_LEN as u64) as usize;
        reader_a.read_exact_at(offset, &mut buf_a[..part_len])?;
        reader_b.read_exact_at(offset, &mut buf_b[..part_len])?;
        if buf_a[..part_len] != buf_b[..part_len] {
            return Ok(false);
        }
        offset += part_len as u64;
    }
    Ok(true)
}

//! Which parts of the base's packed stream stay as they are: those in which enough is still wanted.
//!
//! The stream is taken apart where a cluster starts at a multiple of the block, so that what follows a part that was dropped
//! stands in its blocks as before, and indexes can tell it. Every part is decoded once and compared with the files whose tails
//! lie in it; which of them stay is decided as for [`super::shared`].

use super::matches::{Match, Trust};
use super::shared::{Measures, covered_len, stays};
use super::{BaseReader, Reuse};
use crate::PackOptions;
use crate::context::Context;
use crate::parallel::in_parallel;
use packfs_core::{
    BlockRef, ClusterCut, DecodedLen, Error, Extent, ExtentFrom, NodeId, Progress, Recipe, Result, Stage,
    Tail,
};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::Ordering;

/// Longest part that is decoded at once; a longer one is not used.
const PART_LEN_MAX: u64 = 64 << 20;
/// Most clusters of a stream.
const CLUSTERS_MAX: usize = 1 << 24;

/// A cluster of the stream, or a run of plain blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamCluster {
    /// Where it starts in the base's stream, and how long it is there.
    pub start: u64,
    pub len: u64,
    /// Where it is stored, padding included.
    pub offset: u64,
    pub space: u64,
    /// How it is encoded; `None`: as it is.
    pub block: Option<BlockRef>,
}

/// A run of clusters that stays or goes as a whole, and where it goes.
pub(crate) struct KeptPart {
    pub clusters: Vec<StreamCluster>,
    tails: Vec<StreamTail>,
    start: u64,
    len: u64,
}

/// The end of a file, or all of it, in the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamTail {
    pub node: NodeId,
    /// Where it starts in the file.
    pub from: u64,
    pub len: u32,
    /// Where it starts in the stream: the base's, and once parts are chosen the new one.
    pub at: u64,
    /// Hash of its bytes.
    pub hash: u128,
}

/// What of the stream stays.
#[derive(Default)]
pub(crate) struct KeptStream {
    pub clusters: Vec<StreamCluster>,
    pub tails: Vec<StreamTail>,
    pub len: u64,
}

struct Guess {
    node: NodeId,
    from: u64,
    at: u64,
    len: u32,
    trust: Trust,
}

/// Finds out what stays.
pub(super) fn find(
    context: &Context<'_>,
    cut: &ClusterCut,
    reuse: &Reuse<'_>,
    options: &PackOptions,
    progress: &dyn Progress,
) -> Result<KeptStream> {
    if cut.interlaced || cut.byte_aligned {
        return Ok(KeptStream::default());
    }
    // What cannot be read of the base is not used.
    let parts = parts(cut, reuse).unwrap_or_default();
    let mut guesses = guesses(context, reuse, &parts);
    let tasks: Vec<(Vec<StreamCluster>, Vec<Guess>)> = parts
        .into_iter()
        .map(|part| {
            let range = part_range(&part);
            let later = guesses.split_off(&(range.end, NodeId(0)));
            let inside = std::mem::replace(&mut guesses, later);
            let fits =
                |guess: &Guess| guess.at >= range.start && guess.at + u64::from(guess.len) <= range.end;
            (part, inside.into_values().filter(fits).collect())
        })
        .collect();
    let count: usize = tasks.iter().map(|(_, guesses)| guesses.len()).sum();
    progress.begin(Stage::Base, count as u64, 0);
    let judged = in_parallel(options, progress, &tasks, |(part, guesses)| {
        let judged = judge(context, reuse, part, guesses);
        progress.advance(guesses.len() as u64, 0, 0);
        judged
    })?;
    let damaged = judged.iter().filter(|judged| judged.is_err()).count() as u64;
    reuse.damaged.fetch_add(damaged, Ordering::Relaxed);
    Ok(joined(stays(judged.into_iter().flatten().collect(), measures, reuse.base.waste_max())))
}

/// The stream, taken apart; parts that cannot be used left out.
fn parts(cut: &ClusterCut, reuse: &Reuse<'_>) -> Result<Vec<Vec<StreamCluster>>> {
    let base = reuse.base;
    let Some((id, len)) = base.volume.packed_stream() else { return Ok(Vec::new()) };
    let block_len = u64::from(cut.block_len);
    let mut parts: Vec<Option<Vec<StreamCluster>>> = Vec::new();
    let mut count = 0;
    base.volume.extents(id, 0..len, &mut |extent| {
        count += 1;
        if extent.offset.is_multiple_of(block_len) || parts.is_empty() {
            parts.push(Some(Vec::new()));
        }
        let last = parts.last_mut();
        if let Some(part) = last {
            match (cluster(cut, &extent), part.as_mut()) {
                (Some(found), Some(part)) => part.push(found),
                _ => *part = None,
            }
        }
        if count > CLUSTERS_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let holds = |part: &Vec<StreamCluster>| {
        let range = part_range(part);
        // Only a compressed cluster leaves its block to what comes behind.
        let ends_well =
            range.end.is_multiple_of(block_len) || part.last().is_some_and(|last| last.block.is_some());
        !range.is_empty() && range.end - range.start <= PART_LEN_MAX && ends_well
    };
    Ok(parts.into_iter().flatten().filter(holds).collect())
}

fn part_range(part: &[StreamCluster]) -> Range<u64> {
    match (part.first(), part.last()) {
        (Some(first), Some(last)) => first.start..last.start + last.len,
        _ => 0..0,
    }
}

/// An extent of the stream as a cluster, if it can be copied.
fn cluster(cut: &ClusterCut, extent: &Extent) -> Option<StreamCluster> {
    let block_len = u64::from(cut.block_len);
    let Extent { offset: start, len, from } = *extent;
    match from {
        ExtentFrom::Hole => None,
        ExtentFrom::Stored(offset) => offset.is_multiple_of(block_len).then_some(StreamCluster {
            start,
            len,
            offset,
            space: len.next_multiple_of(block_len),
            block: None,
        }),
        ExtentFrom::Block { block, start: first } => {
            let recipe = cut.recipes.get(usize::from(cut.packed_recipe))?;
            let holds = first == 0 && is_whole_cluster(cut, recipe, &block, len);
            let space = u64::from(block.stored_len);
            holds.then_some(StreamCluster { start, len, offset: block.offset, space, block: Some(block) })
        }
    }
}

/// Whether a block can be copied as a cluster of so many bytes: what the engine promises of its own clusters holds for it.
pub(crate) fn is_whole_cluster(cut: &ClusterCut, recipe: &Recipe, block: &BlockRef, len: u64) -> bool {
    let Recipe::Clusters { codec, second, cluster_len } = recipe else { return false };
    let algorithms = [Some(codec.algorithm()), second.as_ref().map(|codec| codec.algorithm())];
    let unit = cut.block_len;
    u64::from(block.decoded_len) == len
        && block.decodes_to == DecodedLen::Exactly
        && block.zero_padded
        && block.algorithm.is_some()
        && algorithms.contains(&block.algorithm)
        && block.offset.is_multiple_of(u64::from(unit))
        && block.stored_len.is_multiple_of(unit)
        && (unit..=(*cluster_len).max(unit)).contains(&block.stored_len)
        && len > u64::from(block.stored_len)
        && len <= u64::from(cut.decoded_len_max)
}

/// Whether it was compressed by the second codec of a recipe.
pub(crate) fn is_second(recipe: Option<&Recipe>, block: &BlockRef) -> bool {
    match recipe {
        Some(Recipe::Clusters { codec, second: Some(_), .. }) => block.algorithm != Some(codec.algorithm()),
        _ => false,
    }
}

/// Which ends of files may lie in the stream, by where.
fn guesses(
    context: &Context<'_>,
    reuse: &Reuse<'_>,
    parts: &[Vec<StreamCluster>],
) -> BTreeMap<(u64, NodeId), Guess> {
    let stored: BTreeMap<u64, StreamCluster> =
        parts.iter().flatten().map(|cluster| (cluster.offset, *cluster)).collect();
    let reader = BaseReader::new(reuse.base);
    let mut guesses = BTreeMap::new();
    for job in &context.plan.files {
        let len = context.len(job.node);
        let Some(found) = reuse.match_of(job.node).filter(|found| found.len == len) else { continue };
        let only_whole = match job.tail {
            Tail::Shared => context.shares_whole(job),
            Tail::SharedWhole => true,
            Tail::Own | Tail::Inline => continue,
        };
        if let Some((from, at)) = stream_tail(&reader, found, &stored)
            && let Ok(tail_len) = u32::try_from(len - from)
            && (from == 0 || !only_whole)
        {
            let guess = Guess { node: job.node, from, at, len: tail_len, trust: found.trust };
            guesses.insert((at, job.node), guess);
        }
    }
    guesses
}

/// Where the end of a file starts that lies in the stream, in the file and in the stream.
fn stream_tail(
    reader: &BaseReader<'_>,
    file: Match,
    stored: &BTreeMap<u64, StreamCluster>,
) -> Option<(u64, u64)> {
    let mut tail: Option<(u64, u64)> = None;
    for extent in reader.extents(file, 0..file.len).ok()? {
        let place = match extent.from {
            ExtentFrom::Hole => None,
            ExtentFrom::Stored(at) => stored
                .range(..=at)
                .next_back()
                .filter(|(offset, cluster)| cluster.block.is_none() && at - **offset < cluster.len)
                .map(|(offset, cluster)| cluster.start + (at - offset)),
            ExtentFrom::Block { block, start } => stored
                .get(&block.offset)
                .filter(|cluster| cluster.block.is_some_and(|known| known.is_stored_as(&block)))
                .map(|cluster| cluster.start + u64::from(start)),
        };
        tail = match (tail, place) {
            (None, place) => place.map(|at| (extent.offset, at)),
            (Some((from, at)), Some(place)) if place == at + (extent.offset - from) => tail,
            // What lies elsewhere again is no tail.
            (Some(_), _) => return None,
        };
    }
    tail
}

/// Decodes a part and finds out which tails are in it indeed.
fn judge(
    context: &Context<'_>,
    reuse: &Reuse<'_>,
    part: &[StreamCluster],
    guesses: &[Guess],
) -> Result<KeptPart> {
    let range = part_range(part);
    let mut tails = Vec::new();
    if !guesses.is_empty() {
        let mut reader = BaseReader::new(reuse.base);
        let mut decoded = Vec::new();
        for cluster in part {
            match cluster.block {
                Some(block) => decoded.extend_from_slice(reader.decode(&block)?.1),
                None => decoded.extend_from_slice(reader.plain(cluster.offset, cluster.len)?),
            }
        }
        let mut bytes = Vec::new();
        for guess in guesses {
            let start = (guess.at - range.start) as usize;
            let Some(old) = decoded.get(start..start + guess.len as usize) else {
                return Err(Error::corrupt("base", "a tail lies beyond the packed stream"));
            };
            if guess.trust == Trust::Neither {
                bytes.resize(old.len(), 0);
                let read =
                    context.open(guess.node).and_then(|mut file| file.read_exact_at(guess.from, &mut bytes));
                // What cannot be read now fails when it is packed.
                if read.is_err() || bytes != old {
                    continue;
                }
            }
            let hash = xxhash_rust::xxh3::xxh3_128(old);
            let Guess { node, from, at, len, .. } = *guess;
            tails.push(StreamTail { node, from, len, at, hash });
        }
    }
    Ok(KeptPart { clusters: part.to_vec(), tails, start: range.start, len: range.end - range.start })
}

fn measures(part: &KeptPart) -> Measures {
    let covered = covered_len(part.tails.iter().map(|tail| (tail.at, tail.at + u64::from(tail.len))));
    let stored_len = part.clusters.iter().map(|cluster| cluster.space).sum();
    Measures { dead: part.len.saturating_sub(covered), len: part.len, stored_len, place: part.start }
}

/// Puts parts one behind the other.
fn joined(parts: Vec<KeptPart>) -> KeptStream {
    let mut stream = KeptStream::default();
    for part in parts {
        let moved = |at: u64| at - part.start + stream.len;
        let tails = part.tails.iter().map(|tail| StreamTail { at: moved(tail.at), ..*tail });
        stream.tails.extend(tails);
        let clusters = part.clusters.iter();
        stream.clusters.extend(clusters.map(|row| StreamCluster { start: moved(row.start), ..*row }));
        stream.len += part.len;
    }
    stream
}

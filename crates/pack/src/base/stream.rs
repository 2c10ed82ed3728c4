//! Selection of parts of the base's packed stream that are kept: those with the smallest unused
//! part.
//!
//! The stream is split where a cluster starts at a multiple of the block, so data after a dropped
//! part keeps its alignment and indexes can address it. Every part is decoded once and compared
//! with the files whose tails lie in it. Parts are selected like the blocks of [`super::shared`]. A
//! tail that spans two parts is kept only if both are.

use super::matches::{Match, Trust};
use super::shared::{Measures, covered_len, stays};
use super::{BaseReader, Kept, Reuse};
use crate::PackOptions;
use crate::context::Context;
use crate::parallel::in_parallel;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{Error, NodeId, Progress, Result, Stage};
use packfs_format::{ClusterPlan, ClusterRecipe, Clusters, Extent, ExtentFrom, Recipe, Tail};
use std::collections::{BTreeMap, HashMap};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::Ordering;

const PART_LEN_MAX: u64 = 64 << 20;
const CLUSTERS_MAX: usize = 1 << 24;
/// Most slices of tails in parts; further tails are ignored.
const SLICES_MAX: usize = 1 << 22;
/// Further rounds would only find tails that were lost with a dropped part.
const ROUNDS_MAX: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamCluster {
    /// Start in the base's stream, and length there.
    pub start: u64,
    pub len: u64,
    /// Stored position, padding included.
    pub offset: u64,
    pub space: u64,
    /// Encoding; `None` if stored uncompressed.
    pub block: Option<BlockRef>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamTail {
    pub node: NodeId,
    pub from: u64,
    pub len: u32,
    /// Start in the base's stream; once parts are selected, in the new one.
    pub at: u64,
    pub hash: Option<u128>,
}

#[derive(Default)]
pub(crate) struct KeptStream {
    pub clusters: Vec<StreamCluster>,
    pub tails: Vec<StreamTail>,
    pub len: u64,
    tail_of: HashMap<NodeId, usize>,
}

impl KeptStream {
    pub(crate) fn tail(&self, node: NodeId) -> Option<StreamTail> {
        self.tails.get(*self.tail_of.get(&node)?).copied()
    }
}

impl Kept for KeptStream {
    fn keeps_tail_of(&self, node: NodeId) -> bool {
        self.tail_of.contains_key(&node)
    }
}

#[derive(Clone, Copy)]
struct Guess {
    node: NodeId,
    from: u64,
    at: u64,
    len: u32,
    trust: Trust,
}

impl Guess {
    fn range(&self) -> Range<u64> {
        self.at..self.at.saturating_add(self.len.into())
    }
}

struct Found {
    tail: StreamTail,
    parts: Range<usize>,
}

pub(crate) fn find(
    context: &Context<'_, Clusters>,
    reuse: &Reuse<'_, KeptStream>,
    options: &PackOptions,
    progress: &dyn Progress,
) -> Result<KeptStream> {
    let cut = &context.plan.data;
    if cut.interlaced || cut.byte_aligned {
        return Ok(KeptStream::default());
    }
    // An unreadable base is not used.
    let parts = parts(cut, reuse).unwrap_or_default();
    let guesses = within(&parts, guesses(context, reuse, &parts));
    let mut tasks: Vec<(&[StreamCluster], Vec<Guess>)> =
        parts.iter().map(|part| (part.as_slice(), Vec::new())).collect();
    for (guess, inside) in &guesses {
        tasks[inside.clone()].iter_mut().for_each(|(_, guesses)| guesses.push(*guess));
    }
    progress.begin(Stage::Base, tasks.iter().map(|(_, guesses)| guesses.len() as u64).sum(), 0);
    let judged = in_parallel(options, progress, &tasks, |(part, guesses)| {
        let judged = judge(context, reuse, part, guesses);
        progress.advance(guesses.len() as u64, 0, 0);
        judged
    })?;
    let damaged = judged.iter().filter(|judged| judged.is_err()).count() as u64;
    reuse.damaged.fetch_add(damaged, Ordering::Relaxed);

    // Verdicts of each part, in the order of its candidates.
    let mut verdicts: Vec<Option<std::vec::IntoIter<Option<u128>>>> =
        judged.into_iter().map(|judged| judged.ok().map(Vec::into_iter)).collect();
    let mut tails = Vec::new();
    for (guess, inside) in guesses {
        let hashes: Vec<Option<u128>> = verdicts[inside.clone()]
            .iter_mut()
            .map(|verdicts| verdicts.as_mut().and_then(Iterator::next).flatten())
            .collect();
        if hashes.iter().all(Option::is_some) {
            let hash = hashes.first().copied().flatten().filter(|_| hashes.len() == 1);
            let Guess { node, from, at, len, .. } = guess;
            tails.push(Found { tail: StreamTail { node, from, len, at, hash }, parts: inside });
        }
    }
    let is_kept = choose(&parts, &mut tails, reuse.base.waste_max());
    let mut stream = joined(&parts, &is_kept, tails);
    stream.tail_of = stream.tails.iter().enumerate().map(|(index, tail)| (tail.node, index)).collect();
    Ok(stream)
}

/// Candidates that lie in parts without a gap, in stream order, and these parts.
fn within(parts: &[Vec<StreamCluster>], mut guesses: Vec<Guess>) -> Vec<(Guess, Range<usize>)> {
    guesses.sort_unstable_by_key(|guess| (guess.at, guess.node));
    let ranges: Vec<Range<u64>> = parts.iter().map(|part| part_range(part)).collect();
    let mut slices = 0;
    let place = |guess: Guess| {
        let range = guess.range();
        let first = ranges.partition_point(|part| part.end <= range.start);
        let end = ranges.partition_point(|part| part.start < range.end);
        let inside = ranges.get(first..end)?;
        let holds = inside.first()?.start <= range.start
            && inside.last()?.end >= range.end
            && inside.windows(2).all(|pair| pair[0].end == pair[1].start);
        slices += if holds { inside.len() } else { 0 };
        (holds && slices <= SLICES_MAX).then_some((guess, first..end))
    };
    guesses.into_iter().filter_map(place).collect()
}

fn choose(parts: &[Vec<StreamCluster>], tails: &mut Vec<Found>, waste_max: u64) -> Vec<bool> {
    let mut is_kept = vec![true; parts.len()];
    for _ in 0..ROUNDS_MAX {
        let mut wanted: Vec<Vec<(u64, u64)>> = vec![Vec::new(); parts.len()];
        for Found { tail, parts: inside } in &*tails {
            for index in inside.clone() {
                let range = overlap(&part_range(&parts[index]), &(tail.at..tail.at + u64::from(tail.len)));
                wanted[index].push((range.start, range.end));
            }
        }
        let rows = parts.iter().zip(wanted).enumerate().filter(|(index, _)| is_kept[*index]);
        let measured = rows.map(|(index, (part, wanted))| (index, measures(part, wanted))).collect();
        let mut stay = vec![false; parts.len()];
        for (index, _) in stays(measured, |(_, measures)| *measures, waste_max) {
            stay[index] = true;
        }
        tails.retain(|found| found.parts.clone().all(|index| stay[index]));
        if stay == is_kept {
            break;
        }
        is_kept = stay;
    }
    is_kept
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    one.start.max(other.start)..one.end.min(other.end)
}

fn parts(cut: &ClusterPlan, reuse: &Reuse<'_, KeptStream>) -> Result<Vec<Vec<StreamCluster>>> {
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
        // Only a compressed cluster leaves the rest of its block to its successor.
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

fn cluster(cut: &ClusterPlan, extent: &Extent) -> Option<StreamCluster> {
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
            let Recipe::Clusters(recipe) = cut.recipes.get(usize::from(cut.packed_recipe))? else {
                return None;
            };
            let holds = first == 0 && is_whole_cluster(cut, recipe, &block, len);
            let space = u64::from(block.stored_len);
            holds.then_some(StreamCluster { start, len, offset: block.offset, space, block: Some(block) })
        }
    }
}

/// True if a block can be copied as a cluster of `space` bytes: it satisfies what the engine
/// guarantees for its own clusters.
pub(crate) fn is_whole_cluster(
    cut: &ClusterPlan,
    recipe: &ClusterRecipe,
    block: &BlockRef,
    len: u64,
) -> bool {
    let unit = cut.block_len;
    u64::from(block.decoded_len) == len
        && block.decodes_to == DecodedLen::Exactly
        && block.zero_padded
        && recipe.codecs().any(|codec| block.algorithm == Some(codec.algorithm()))
        && block.offset.is_multiple_of(u64::from(unit))
        && block.stored_len.is_multiple_of(unit)
        && (unit..=recipe.cluster_len.max(unit)).contains(&block.stored_len)
        && len > u64::from(block.stored_len)
        && len <= u64::from(cut.decoded_len_max)
}

pub(crate) fn is_second(recipe: &ClusterRecipe, block: &BlockRef) -> bool {
    recipe.second.is_some() && block.algorithm != Some(recipe.codec.algorithm())
}

fn guesses(
    context: &Context<'_, Clusters>,
    reuse: &Reuse<'_, KeptStream>,
    parts: &[Vec<StreamCluster>],
) -> Vec<Guess> {
    let stored: BTreeMap<u64, StreamCluster> =
        parts.iter().flatten().map(|cluster| (cluster.offset, *cluster)).collect();
    let reader = BaseReader::new(reuse.base);
    let mut guesses = Vec::new();
    for job in &context.plan.files {
        let len = context.len(job.node);
        let Some(found) = reuse.match_of(job.node).filter(|found| found.len == len) else { continue };
        let only_whole = match job.storage.tail {
            Tail::Shared => context.shares_whole(job),
            Tail::SharedWhole => true,
            Tail::Own | Tail::Inline => continue,
        };
        if let Some((from, at)) = stream_tail(&reader, found, &stored)
            && let Ok(tail_len) = u32::try_from(len - from)
            && (from == 0 || !only_whole)
        {
            guesses.push(Guess { node: job.node, from, at, len: tail_len, trust: found.trust });
        }
    }
    guesses
}

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
            // Data in a second place is no tail.
            (Some(_), _) => return None,
        };
    }
    tail
}

/// Decodes a part and hashes the slices of tails that it really holds.
fn judge(
    context: &Context<'_, Clusters>,
    reuse: &Reuse<'_, KeptStream>,
    part: &[StreamCluster],
    guesses: &[Guess],
) -> Result<Vec<Option<u128>>> {
    let range = part_range(part);
    let mut verdicts = Vec::new();
    if guesses.is_empty() {
        return Ok(verdicts);
    }
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
        let slice = overlap(&range, &guess.range());
        let Some(old) = decoded.get((slice.start - range.start) as usize..(slice.end - range.start) as usize)
        else {
            return Err(Error::corrupt("base", "a tail lies beyond the packed stream"));
        };
        if guess.trust == Trust::Neither {
            bytes.resize(old.len(), 0);
            let from = guess.from + (slice.start - guess.at);
            let read = context.open(guess.node).and_then(|mut file| file.read_exact_at(from, &mut bytes));
            // A read error here is reported when the file is packed.
            if read.is_err() || bytes != old {
                verdicts.push(None);
                continue;
            }
        }
        verdicts.push(Some(xxhash_rust::xxh3::xxh3_128(old)));
    }
    Ok(verdicts)
}

fn measures(part: &[StreamCluster], wanted: Vec<(u64, u64)>) -> Measures {
    let range = part_range(part);
    let len = range.end - range.start;
    let stored_len = part.iter().map(|cluster| cluster.space).sum();
    Measures {
        dead: len.saturating_sub(covered_len(wanted.into_iter())),
        len,
        stored_len,
        place: range.start,
    }
}

fn joined(parts: &[Vec<StreamCluster>], is_kept: &[bool], tails: Vec<Found>) -> KeptStream {
    let mut stream = KeptStream::default();
    // Starts of the parts in the base's stream and in the new one.
    let mut starts = vec![(0, 0); parts.len()];
    for (index, part) in parts.iter().enumerate().filter(|(index, _)| is_kept[*index]) {
        let range = part_range(part);
        let (there, here) = (range.start, stream.len);
        starts[index] = (there, here);
        let moved = part.iter().map(|row| StreamCluster { start: row.start - there + here, ..*row });
        stream.clusters.extend(moved);
        stream.len += range.end - range.start;
    }
    let moved = |found: &Found| {
        let (there, here) = starts[found.parts.start];
        StreamTail { at: found.tail.at - there + here, ..found.tail }
    };
    stream.tails = tails.iter().map(moved).collect();
    stream
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: u64, len: u64) -> Vec<StreamCluster> {
        vec![StreamCluster { start, len, offset: 0, space: 4096, block: None }]
    }

    fn guess(at: u64, len: u32) -> Guess {
        Guess { node: NodeId(at as u32), from: 0, at, len, trust: Trust::Same }
    }

    fn found(at: u64, len: u32, parts: Range<usize>) -> Found {
        Found { tail: StreamTail { node: NodeId(at as u32), from: 0, len, at, hash: None }, parts }
    }

    #[test]
    fn tails_lie_in_parts_that_follow_each_other() {
        let parts = [part(0, 100), part(100, 100), part(300, 100)];
        let guesses = vec![guess(300, 100), guess(90, 20), guess(10, 10), guess(190, 20), guess(350, 60)];
        let places: Vec<_> =
            within(&parts, guesses).into_iter().map(|(guess, inside)| (guess.at, inside)).collect();
        assert_eq!(places, [(10, 0..1), (90, 0..2), (300, 2..3)]);
        assert!(within(&[], vec![guess(0, 1)]).is_empty());
    }

    #[test]
    fn dropping_a_part_drops_its_tails_and_possibly_the_next_part() {
        let parts = [part(0, 100), part(100, 100), part(200, 100)];
        let tails =
            || vec![found(0, 10, 0..1), found(90, 60, 0..2), found(150, 50, 1..2), found(200, 100, 2..3)];
        // The first part is mostly unused, so the tail that starts in it is lost, and half of the
        // second becomes unused.
        let mut some = tails();
        assert_eq!(choose(&parts, &mut some, 4096), [false, true, true]);
        let stream = joined(&parts, &[false, true, true], some);
        assert_eq!(stream.len, 200);
        assert_eq!(stream.tails.iter().map(|tail| tail.at).collect::<Vec<_>>(), [50, 100]);
        assert_eq!(stream.clusters.iter().map(|row| row.start).collect::<Vec<_>>(), [0, 100]);
        let mut few = tails();
        assert_eq!(choose(&parts, &mut few, 1000), [false, false, true]);
        assert_eq!(few.len(), 1);
    }
}

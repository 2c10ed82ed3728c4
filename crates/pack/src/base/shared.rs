//! Selection of the base's fragment blocks that are kept: those with the smallest unused part.
//!
//! Keeping a block with unused tails costs space, and dropping it costs the time to compress the
//! used rest again. So blocks are kept in ascending order of unused bytes, until these reach the
//! share [`super::DEAD_SHARE`] of the base. An image that is packed onto its predecessor again and
//! again does not grow beyond that.

use super::matches::Trust;
use super::{BaseReader, Kept, Reuse};
use crate::PackOptions;
use crate::context::Context;
use crate::parallel::in_parallel;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{Error, NodeId, Progress, Result, Stage};
use packfs_format::{Blocks, ExtentFrom};
use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

const STRETCH_BLOCKS: u64 = 4096;

pub(crate) struct KeptBlock {
    pub block: BlockRef,
    /// Its used tails, in plan order.
    pub tails: Vec<KeptTail>,
}

/// Fragment blocks that are kept, in the order of the base.
#[derive(Default)]
pub(crate) struct KeptBlocks {
    pub blocks: Vec<KeptBlock>,
    nodes: HashSet<NodeId>,
}

impl Kept for KeptBlocks {
    fn keeps_tail_of(&self, node: NodeId) -> bool {
        self.nodes.contains(&node)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptTail {
    pub node: NodeId,
    /// Start in the decoded block.
    pub start: u32,
    pub len: u32,
    pub hash: u128,
}

struct Guess {
    node: NodeId,
    /// Start in the file, and length.
    from: u64,
    len: u32,
    /// Start in the decoded block.
    start: u32,
    trust: Trust,
}

struct Judged {
    kept: KeptBlock,
    decoded_len: u64,
    dead_len: u64,
}

impl Judged {
    fn measures(&self) -> Measures {
        let stored_len = self.kept.block.stored_len.into();
        Measures { dead: self.dead_len, len: self.decoded_len, stored_len, place: self.kept.block.offset }
    }
}

/// Costs of keeping a part of the base, lengths in bytes.
#[derive(Clone, Copy)]
pub(super) struct Measures {
    pub dead: u64,
    pub len: u64,
    pub stored_len: u64,
    /// Position in the base; kept parts stay in this order.
    pub place: u64,
}

impl Measures {
    /// Returns about how many stored bytes the unused part takes.
    fn waste(&self) -> u64 {
        (u128::from(self.dead) * u128::from(self.stored_len) / u128::from(self.len.max(1))) as u64
    }
}

pub(crate) fn find(
    context: &Context<'_, Blocks>,
    reuse: &Reuse<'_, KeptBlocks>,
    options: &PackOptions,
    progress: &dyn Progress,
) -> Result<KeptBlocks> {
    let Some(algorithm) = context.plan.data.shared_codec.as_ref().map(|codec| codec.algorithm()) else {
        return Ok(KeptBlocks::default());
    };
    let guesses: Vec<(BlockRef, Vec<Guess>)> = guess(context, reuse)
        .into_values()
        .filter(|(block, _)| block.algorithm == Some(algorithm) && !block.zero_padded)
        .collect();
    let tail_count: usize = guesses.iter().map(|(_, tails)| tails.len()).sum();
    progress.begin(Stage::Base, tail_count as u64, 0);
    // Readers move from task to task, because creating decoders is expensive.
    let readers = Mutex::new(Vec::new());
    let judged = in_parallel(options, progress, &guesses, |(block, tails)| {
        let idle = readers.lock().ok().and_then(|mut idle: std::sync::MutexGuard<'_, Vec<_>>| idle.pop());
        let mut reader = idle.unwrap_or_else(|| BaseReader::new(reuse.base));
        let judged = judge(context, &mut reader, *block, tails);
        if let Ok(mut idle) = readers.lock() {
            idle.push(reader);
        }
        progress.advance(tails.len() as u64, 0, 0);
        judged
    })?;
    let damaged = judged.iter().filter(|judged| judged.is_err()).count() as u64;
    reuse.damaged.fetch_add(damaged, Ordering::Relaxed);
    let stay = stays(judged.into_iter().flatten().collect(), Judged::measures, reuse.base.waste_max());
    let blocks: Vec<KeptBlock> = stay.into_iter().map(|block| block.kept).collect();
    let nodes = blocks.iter().flat_map(|block| &block.tails).map(|tail| tail.node).collect();
    Ok(KeptBlocks { blocks, nodes })
}

fn guess(
    context: &Context<'_, Blocks>,
    reuse: &Reuse<'_, KeptBlocks>,
) -> BTreeMap<u64, (BlockRef, Vec<Guess>)> {
    let reader = BaseReader::new(reuse.base);
    let mut blocks: BTreeMap<u64, (BlockRef, Vec<Guess>)> = BTreeMap::new();
    for (index, job) in context.plan.files.iter().enumerate() {
        let (len, tail_len) = (context.len(job.node), context.shared_tail_len(index as u32));
        let Some(found) = reuse.match_of(job.node).filter(|found| tail_len > 0 && found.len == len) else {
            continue;
        };
        // Unreadable parts of the base are not used.
        let Ok(extents) = reader.extents(found, len - tail_len..len) else { continue };
        let [extent] = extents[..] else { continue };
        let ExtentFrom::Block { block, start } = extent.from else { continue };
        if block.decodes_to != DecodedLen::AtMost || u64::from(block.decoded_len) > context.block_len() {
            continue;
        }
        let (known, tails) = blocks.entry(block.offset).or_insert_with(|| (block, Vec::new()));
        if *known == block {
            let (node, from, trust) = (job.node, len - tail_len, found.trust);
            // A tail is never longer than a block, which fits in u32.
            tails.push(Guess { node, from, len: tail_len as u32, start, trust });
        }
    }
    leave_blocks_of_files(context, reuse, &reader, &mut blocks);
    blocks
}

/// Removes blocks that also belong to a single file: they are copied with that file.
fn leave_blocks_of_files(
    context: &Context<'_, Blocks>,
    reuse: &Reuse<'_, KeptBlocks>,
    reader: &BaseReader<'_>,
    blocks: &mut BTreeMap<u64, (BlockRef, Vec<Guess>)>,
) {
    if blocks.is_empty() {
        return;
    }
    let stretch_len = STRETCH_BLOCKS * context.block_len();
    for found in context.plan.files.iter().filter_map(|job| reuse.match_of(job.node)) {
        let mut start = 0;
        while start < found.len && found.len >= context.block_len() {
            let end = found.len.min(start.saturating_add(stretch_len));
            for extent in reader.extents(found, start..end).unwrap_or_default() {
                if let ExtentFrom::Block { block, .. } = extent.from
                    && block.decodes_to == DecodedLen::Exactly
                {
                    blocks.remove(&block.offset);
                }
            }
            start = end;
        }
    }
}

fn judge(
    context: &Context<'_, Blocks>,
    reader: &mut BaseReader<'_>,
    block: BlockRef,
    guesses: &[Guess],
) -> Result<Judged> {
    // A block whose contents are trusted is decoded all the same: its length is not stored.
    let (_, decoded) = reader.decode(&block)?;
    let mut tails = Vec::new();
    let mut bytes = Vec::new();
    // Data common to several files is hashed and read once.
    let mut hashes: HashMap<(u32, u32), u128> = HashMap::new();
    for guess in guesses {
        let range = guess.start as usize..(guess.start as usize).saturating_add(guess.len as usize);
        let Some(old) = decoded.get(range) else {
            return Err(Error::corrupt("base", "a tail lies beyond its block"));
        };
        if guess.trust == Trust::Neither {
            bytes.resize(old.len(), 0);
            let read =
                context.open(guess.node).and_then(|mut file| file.read_exact_at(guess.from, &mut bytes));
            // A read error here is reported when the file is packed.
            if read.is_err() || bytes != old {
                continue;
            }
        }
        let hash = match hashes.entry((guess.start, guess.len)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => *free.insert(xxhash_rust::xxh3::xxh3_128(old)),
        };
        tails.push(KeptTail { node: guess.node, start: guess.start, len: guess.len, hash });
    }
    let decoded_len = decoded.len() as u64;
    let covered = covered_len(tails.iter().map(|tail| (tail.start.into(), (tail.start + tail.len).into())));
    let dead_len = decoded_len - covered;
    Ok(Judged { kept: KeptBlock { block, tails }, decoded_len, dead_len })
}

pub(super) fn covered_len(ranges: impl Iterator<Item = (u64, u64)>) -> u64 {
    let mut ranges: Vec<(u64, u64)> = ranges.collect();
    ranges.sort_unstable();
    let (mut end, mut sum) = (0, 0);
    for (from, to) in ranges {
        sum += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    sum
}

/// Keeps parts in ascending order of unused bytes, as long as these stay within `waste_max`.
pub(super) fn stays<T>(all: Vec<T>, measure: fn(&T) -> Measures, waste_max: u64) -> Vec<T> {
    let mut measured: Vec<(Measures, T)> = all.into_iter().map(|one| (measure(&one), one)).collect();
    measured.retain(|(found, _)| found.len > 0 && found.dead.saturating_mul(2) <= found.len);
    measured.sort_by_key(|(found, _)| {
        let dead_share = u128::from(found.dead) * 10_000 / u128::from(found.len);
        (dead_share, found.place)
    });
    let mut wasted = 0;
    let mut kept: Vec<(Measures, T)> = measured
        .into_iter()
        .take_while(|(found, _)| {
            wasted += found.waste();
            wasted <= waste_max
        })
        .collect();
    kept.sort_by_key(|(found, _)| found.place);
    kept.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_tails_count_once() {
        let ranges = [(10, 20), (0, 5), (15, 25), (10, 20)];
        assert_eq!(covered_len(ranges.into_iter()), 5 + 15);
        assert_eq!(covered_len(std::iter::empty()), 0);
    }

    #[test]
    fn keeps_blocks_with_fewest_unused_bytes_within_the_limit() {
        fn measure(&(place, dead): &(u64, u64)) -> Measures {
            Measures { dead, len: 1000, stored_len: 400, place }
        }
        let places = |waste_max| -> Vec<u64> {
            let all = vec![(1, 300), (2, 0), (3, 100), (4, 600)];
            stays(all, measure, waste_max).iter().map(|(place, _)| *place).collect()
        };
        assert_eq!(places(0), [2]);
        assert_eq!(places(40), [2, 3]);
        assert_eq!(places(160), [1, 2, 3]);
        // A part that is more than half unused is never kept.
        assert_eq!(places(u64::MAX), [1, 2, 3]);
    }
}

//! Which of the base's shared blocks stay as they are: those in which enough is still wanted.
//!
//! A block that is kept with tails that nobody wants any more costs space, and a block that is dropped costs the time to
//! compress what is left of it. So blocks are kept from the one with the least dead part on, until the dead parts of all that
//! are kept make [`DEAD_SHARE`] of the base: an image that is made on the one before it, again and again, does not grow
//! beyond that.

use super::matches::Trust;
use super::{BaseReader, Reuse};
use crate::PackOptions;
use crate::context::Context;
use crate::parallel::in_parallel;
use packfs_core::{BlockRef, DecodedLen, Error, ExtentFrom, FileJob, NodeId, Progress, Result, Stage};
use std::collections::BTreeMap;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// Dead bytes may take one part in so many of the base.
pub(crate) const DEAD_SHARE: u64 = 128;

/// A shared block that stays.
pub(crate) struct KeptBlock {
    pub block: BlockRef,
    /// The tails in it that are wanted, in the order of the plan.
    pub tails: Vec<KeptTail>,
}

/// A tail that stays where it is in its block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptTail {
    pub node: NodeId,
    /// Where it starts in the decoded block.
    pub start: u32,
    pub len: u32,
    /// Hash of its bytes.
    pub hash: u128,
}

/// A tail that may be in a block.
struct Guess {
    job: FileJob,
    start: u32,
    trust: Trust,
}

/// A block and how much of it is wanted.
struct Judged {
    kept: KeptBlock,
    decoded_len: u64,
    dead_len: u64,
}

impl Judged {
    /// What the dead part takes of the stored block, about.
    fn waste(&self) -> u64 {
        self.dead_len * u64::from(self.kept.block.stored_len) / self.decoded_len.max(1)
    }
}

/// Compares every tail of the source with the one in the base that it may be.
pub(super) fn find(
    context: &Context<'_>,
    reuse: &Reuse<'_>,
    options: &PackOptions,
    progress: &dyn Progress,
) -> Result<Vec<KeptBlock>> {
    let Some(algorithm) = context.plan.shared_codec.as_ref().map(|codec| codec.algorithm()) else {
        return Ok(Vec::new());
    };
    let guesses: Vec<(BlockRef, Vec<Guess>)> = guess(context, reuse)
        .into_values()
        .filter(|(block, _)| block.algorithm == Some(algorithm) && !block.zero_padded)
        .collect();
    let tail_count: usize = guesses.iter().map(|(_, tails)| tails.len()).sum();
    progress.begin(Stage::Base, tail_count as u64, 0);
    // Readers go from task to task: decoders are dear to make.
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
    Ok(choose(judged.into_iter().flatten().collect(), reuse.base.image.len() / DEAD_SHARE))
}

/// The tails that may be in each block, by where it is stored.
fn guess(context: &Context<'_>, reuse: &Reuse<'_>) -> BTreeMap<u64, (BlockRef, Vec<Guess>)> {
    let reader = BaseReader::new(reuse.base);
    let mut blocks: BTreeMap<u64, (BlockRef, Vec<Guess>)> = BTreeMap::new();
    for (index, job) in context.plan.files.iter().enumerate() {
        let (len, tail_len) = (context.len(job.node), context.shared_tail_len(index as u32));
        let Some(found) = reuse.match_of(job.node).filter(|found| tail_len > 0 && found.len == len) else {
            continue;
        };
        // What cannot be read of the base is not used.
        let Ok(extents) = reader.extents(found, len - tail_len..len) else { continue };
        let [extent] = extents[..] else { continue };
        let ExtentFrom::Block { block, start } = extent.from else { continue };
        if block.decodes_to != DecodedLen::AtMost || u64::from(block.decoded_len) > context.block_len() {
            continue;
        }
        let (known, tails) = blocks.entry(block.offset).or_insert_with(|| (block, Vec::new()));
        if *known == block {
            tails.push(Guess { job: *job, start, trust: found.trust });
        }
    }
    blocks
}

/// Finds out which tails are in a block indeed.
fn judge(
    context: &Context<'_>,
    reader: &mut BaseReader<'_>,
    block: BlockRef,
    guesses: &[Guess],
) -> Result<Judged> {
    // A block of which nothing is looked at still has to be measured, as its length is stored nowhere.
    let (_, decoded) = reader.decode(&block)?;
    let mut tails = Vec::new();
    let mut bytes = Vec::new();
    // What several files have in common is hashed and read once.
    let mut hashes: HashMap<(u32, u32), u128> = HashMap::new();
    for guess in guesses {
        let len = context.len(guess.job.node);
        let tail_len = match guess.job.tail {
            packfs_core::Tail::Shared => len % context.block_len(),
            _ => len,
        } as u32;
        let range = guess.start as usize..(guess.start as usize).saturating_add(tail_len as usize);
        let Some(old) = decoded.get(range) else {
            return Err(Error::corrupt("base", "a tail lies beyond its block"));
        };
        if guess.trust == Trust::Neither {
            bytes.resize(old.len(), 0);
            let read = context
                .open(guess.job.node)
                .and_then(|mut file| file.read_exact_at(len - u64::from(tail_len), &mut bytes));
            // What cannot be read now fails when it is packed.
            if read.is_err() || bytes != old {
                continue;
            }
        }
        let hash = match hashes.entry((guess.start, tail_len)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => *free.insert(xxhash_rust::xxh3::xxh3_128(old)),
        };
        tails.push(KeptTail { node: guess.job.node, start: guess.start, len: tail_len, hash });
    }
    let decoded_len = decoded.len() as u64;
    let dead_len = decoded_len - covered_len(&tails);
    Ok(Judged { kept: KeptBlock { block, tails }, decoded_len, dead_len })
}

/// How many bytes of a block are in any tail.
fn covered_len(tails: &[KeptTail]) -> u64 {
    let mut ranges: Vec<(u32, u32)> = tails.iter().map(|tail| (tail.start, tail.start + tail.len)).collect();
    ranges.sort_unstable();
    let mut end = 0;
    ranges.iter().fold(0, |sum, &(from, to)| {
        let more = to.saturating_sub(from.max(end));
        end = end.max(to);
        sum + u64::from(more)
    })
}

/// Keeps blocks from the one with the least dead part on, as long as their dead parts take no more than `waste_max`.
fn choose(mut judged: Vec<Judged>, waste_max: u64) -> Vec<KeptBlock> {
    judged.retain(|block| block.dead_len * 2 <= block.decoded_len && !block.kept.tails.is_empty());
    judged.sort_by_key(|block| {
        let dead_share = block.dead_len * 10_000 / block.decoded_len.max(1);
        (dead_share, block.kept.block.offset)
    });
    let mut wasted = 0;
    let mut kept: Vec<KeptBlock> = judged
        .into_iter()
        .take_while(|block| {
            wasted += block.waste();
            wasted <= waste_max
        })
        .map(|block| block.kept)
        .collect();
    kept.sort_by_key(|block| block.block.offset);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(start: u32, len: u32) -> KeptTail {
        KeptTail { node: NodeId(1), start, len, hash: 0 }
    }

    fn judged(offset: u64, dead_len: u64) -> Judged {
        let kept = KeptBlock { block: BlockRef::stored(offset, 400), tails: vec![tail(0, 1)] };
        Judged { kept, decoded_len: 1000, dead_len }
    }

    #[test]
    fn bytes_of_several_tails_count_once() {
        assert_eq!(covered_len(&[tail(10, 10), tail(0, 5), tail(15, 10), tail(10, 10)]), 5 + 15);
        assert_eq!(covered_len(&[]), 0);
    }

    #[test]
    fn blocks_with_least_dead_bytes_stay_as_far_as_allowed() {
        let blocks = || vec![judged(1, 300), judged(2, 0), judged(3, 100), judged(4, 600)];
        let offsets = |waste_max| -> Vec<u64> {
            choose(blocks(), waste_max).iter().map(|kept| kept.block.offset).collect()
        };
        assert_eq!(offsets(0), [2]);
        assert_eq!(offsets(40), [2, 3]);
        assert_eq!(offsets(160), [1, 2, 3]);
        // More than half of it dead: never.
        assert_eq!(offsets(u64::MAX), [1, 2, 3]);
    }
}

//! The decoded blocks of an image: each is read and decoded once, however many readers request it.
//!
//! Decodes blocks for random reads and read-ahead. Invariant: no thread waits for another's block
//! while it holds one that it has yet to decode, so there are no deadlocks.

use crate::block::{self, Decoded, DecoderPool};
use crate::buffers::Buffers;
use crate::cache::BlockCache;
use crate::counters::Tally;
use crate::slot::{Answer, Attempt, Slot};
use packfs_codec::BlockRef;
use packfs_codec::Decoders;
use packfs_core::{Image, Result};
use packfs_format::units::*;
use std::sync::Arc;

/// Longest gap between blocks that is read instead of skipped.
const GAP_LEN_MAX: u64 = 16 << 10;
/// Stored bytes read at a time, unless a block is longer.
const RUN_LEN_MAX: u64 = 1 << 20;

pub(crate) struct Blocks {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) cache: BlockCache,
    pub(crate) decoders: DecoderPool,
    pub(crate) buffers: Arc<Buffers>,
    pub(crate) tally: Arc<Tally>,
}

pub(crate) type WantedBlock = (BlockRef, Arc<Slot>);

type Decode = fn(&mut Decoders, &BlockRef, &[u8], &Arc<Buffers>) -> Result<Decoded>;

struct Due<'a> {
    block: BlockRef,
    attempt: Attempt<'a>,
    index: usize,
}

impl Blocks {
    pub(crate) fn new(image: Arc<dyn Image>, cache_bytes: u64) -> Self {
        let tally = Arc::<Tally>::default();
        Blocks {
            image,
            cache: BlockCache::new(cache_bytes, Arc::clone(&tally)),
            decoders: DecoderPool::default(),
            buffers: Arc::default(),
            tally,
        }
    }

    /// Counted as file data.
    pub(crate) fn read_image(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.tally.data_reads.add(1);
        self.tally.data_bytes.add(buf.len() as u64);
        self.image.read_exact_at(offset, buf)
    }

    pub(crate) fn get(
        &self,
        slot: &Slot,
        wanted: &BlockRef,
        decoders: &mut Decoders,
    ) -> Result<Arc<Decoded>> {
        self.get_with(slot, wanted, || self.read_one(wanted, decoders))
    }

    /// Returns at least `prefix` of a block; decodes no more.
    pub(crate) fn get_no_more(
        &self,
        slot: &Slot,
        prefix: &BlockRef,
        decoders: &mut Decoders,
    ) -> Result<Arc<Decoded>> {
        self.get_with(slot, prefix, || self.read_with(prefix, decoders, block::decode_no_more))
    }

    /// Returns at least `prefix` of a block; decodes the whole block if needed.
    pub(crate) fn get_whole_for(
        &self,
        slot: &Slot,
        prefix: &BlockRef,
        wanted: &BlockRef,
        decoders: &mut Decoders,
    ) -> Result<Arc<Decoded>> {
        self.get_with(slot, prefix, || self.read_one(wanted, decoders))
    }

    fn get_with(
        &self,
        slot: &Slot,
        wanted: &BlockRef,
        mut decode: impl FnMut() -> Result<Decoded>,
    ) -> Result<Arc<Decoded>> {
        let mut is_hit = true;
        loop {
            let found = match slot.ask(wanted)? {
                Answer::Decoded(decoded) => Some(decoded),
                Answer::Ours(attempt) => {
                    is_hit = false;
                    Some(self.finish(attempt, wanted, decode())?)
                }
                Answer::Busy(attempt) => {
                    is_hit = false;
                    slot.wait(wanted, attempt, &self.tally)?
                }
            };
            if let Some(decoded) = found {
                let count = if is_hit { &self.tally.hits } else { &self.tally.misses };
                count.add(1);
                return Ok(decoded);
            }
        }
    }

    /// Adjacent blocks are read together. Blocks that others are decoding come last. One result
    /// each.
    pub(crate) fn get_all(&self, wanted: &[WantedBlock]) -> Vec<Result<Arc<Decoded>>> {
        self.decoders.with(|decoders| {
            if let [(block, slot)] = wanted {
                return vec![self.get(slot, block, decoders)];
            }
            let mut outcomes: Vec<Option<Result<Arc<Decoded>>>> = wanted.iter().map(|_| None).collect();
            let mut due = Vec::new();
            for (index, (block, slot)) in wanted.iter().enumerate() {
                match slot.ask(block) {
                    Ok(Answer::Decoded(decoded)) => {
                        self.tally.hits.add(1);
                        outcomes[index] = Some(Ok(decoded));
                    }
                    Ok(Answer::Ours(attempt)) => due.push(Due { block: *block, attempt, index }),
                    Ok(Answer::Busy(_)) => {}
                    Err(error) => outcomes[index] = Some(Err(error)),
                }
            }
            self.tally.misses.add(due.len() as u64);
            self.decode_due(due, decoders, |index, outcome| outcomes[index] = Some(outcome));
            let mut outcomes = outcomes.into_iter();
            let next = |(block, slot): &WantedBlock| match outcomes.next().flatten() {
                Some(outcome) => outcome,
                None => self.get(slot, block, decoders),
            };
            wanted.iter().map(next).collect()
        })
    }

    /// Skips blocks in progress. Errors are left to the reader.
    pub(crate) fn decode_ahead(&self, wanted: &[WantedBlock], decoders: &mut Decoders) {
        let due = wanted.iter().enumerate().filter_map(|(index, (block, slot))| {
            Some(Due { block: *block, attempt: slot.take_ahead(block)?, index })
        });
        let due: Vec<Due<'_>> = due.collect();
        let ahead = due.iter().filter(|due| due.attempt.slot().is_ahead()).count();
        self.tally.ahead.add(ahead as u64);
        self.decode_due(due, decoders, |_, _| {});
    }

    /// Blocks are decoded in disk order.
    fn decode_due(
        &self,
        mut due: Vec<Due<'_>>,
        decoders: &mut Decoders,
        mut done: impl FnMut(usize, Result<Arc<Decoded>>),
    ) {
        due.sort_by_key(|due| due.block.offset);
        let mut due = due.into_iter().peekable();
        let mut run: Vec<Due<'_>> = Vec::new();
        while let Some(next) = due.next() {
            let stored = block::stored_range(&next.block);
            let start = run.first().map_or(stored.start, |first| first.block.offset);
            run.push(next);
            let goes_on = due.peek().is_some_and(|following| {
                let following = block::stored_range(&following.block);
                let is_near = following.start <= end_of(stored.end, GAP_LEN_MAX);
                is_near && following.end.max(stored.end) - start <= RUN_LEN_MAX
            });
            if goes_on {
                continue;
            }
            self.decode_run(std::mem::take(&mut run), decoders, &mut done);
        }
    }

    /// If the common read fails, each block is read alone.
    fn decode_run(
        &self,
        run: Vec<Due<'_>>,
        decoders: &mut Decoders,
        done: &mut impl FnMut(usize, Result<Arc<Decoded>>),
    ) {
        let start = run.first().map_or(0, |due| due.block.offset);
        let end = run.iter().map(|due| block::stored_range(&due.block).end).max().unwrap_or(start);
        let mut stored = None;
        if run.len() > 1 && run.iter().all(|due| block::check(&*self.image, &due.block).is_ok()) {
            // Checked: a run is no longer than the longest block or the limit of runs.
            let mut bytes = self.buffers.take((end - start) as usize);
            bytes.resize((end - start) as usize, 0);
            stored = self.read_image(start, &mut bytes).is_ok().then_some(bytes);
        }
        for Due { block, attempt, index } in run {
            let from = (block.offset - start) as usize;
            let bytes = stored.as_ref().and_then(|bytes| bytes.get(from..)?.get(..block.stored_len as usize));
            let outcome = match bytes {
                Some(bytes) => {
                    self.counted(block::decode_kept(decoders, &block, bytes, &self.buffers), &block)
                }
                None => self.read_one(&block, decoders),
            };
            done(index, self.finish(attempt, &block, outcome));
        }
    }

    /// Wakes all waiting threads, and counts the block's memory.
    fn finish(
        &self,
        attempt: Attempt<'_>,
        wanted: &BlockRef,
        outcome: Result<Decoded>,
    ) -> Result<Arc<Decoded>> {
        let slot = attempt.slot();
        let decoded = attempt.finish(wanted, outcome)?;
        self.cache.settle(slot, decoded.memory_len());
        Ok(decoded)
    }

    fn read_one(&self, block: &BlockRef, decoders: &mut Decoders) -> Result<Decoded> {
        self.read_with(block, decoders, block::decode_kept)
    }

    fn read_with(&self, block: &BlockRef, decoders: &mut Decoders, decode: Decode) -> Result<Decoded> {
        block::check(&*self.image, block)?;
        let mut stored = self.buffers.take(block.stored_len as usize);
        stored.resize(block.stored_len as usize, 0);
        self.read_image(block.offset, &mut stored)?;
        if block.algorithm.is_none() {
            return block::keep_stored(decoders, block, stored);
        }
        self.counted(decode(decoders, block, &stored, &self.buffers), block)
    }

    fn counted(&self, outcome: Result<Decoded>, block: &BlockRef) -> Result<Decoded> {
        if block.algorithm.is_some() {
            self.tally.decoded(outcome.as_ref().map(|decoded| decoded.len()).map_err(|_| ()));
        }
        outcome
    }
}

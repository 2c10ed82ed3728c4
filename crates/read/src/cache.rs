//! The cache of decoded blocks, with its memory limit and eviction.

use crate::block::Place;
use crate::counters::Tally;
use crate::slot::Slot;
use packfs_codec::BlockRef;
use packfs_format::units::*;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of separately locked maps.
const SHARD_COUNT: usize = 16;
/// Estimated memory of a slot besides its block, in bytes.
const SLOT_LEN: u64 = 256;
/// Bytes of completely used blocks that are kept nevertheless: files with the same contents may
/// follow.
const USED_UP_LEN_MAX: u64 = 2 << 20;

pub(crate) struct BlockCache {
    shards: Vec<Mutex<Shard>>,
    /// Counts requests, to order blocks by last use.
    clock: AtomicU64,
    len: AtomicU64,
    len_max: u64,
    used_up: Mutex<UsedUp>,
    tally: Arc<Tally>,
}

#[derive(Default)]
struct UsedUp {
    blocks: VecDeque<(Place, u64, u64)>,
    len: u64,
}

#[derive(Default)]
struct Shard {
    slots: HashMap<Place, Kept>,
    /// Order of eviction.
    by_use: BTreeMap<u64, Place>,
}

struct Kept {
    slot: Arc<Slot>,
    used: u64,
    cost: u64,
    /// True if `cost` was measured; otherwise it is an estimate.
    is_settled: bool,
}

impl BlockCache {
    pub(crate) fn new(len_max: u64, tally: Arc<Tally>) -> Self {
        let shards = (0..SHARD_COUNT).map(|_| Mutex::default()).collect();
        BlockCache {
            shards,
            clock: AtomicU64::new(0),
            len: AtomicU64::new(0),
            len_max,
            used_up: Mutex::default(),
            tally,
        }
    }

    pub(crate) fn len_max(&self) -> u64 {
        self.len_max
    }

    fn lock(&self, index: usize) -> MutexGuard<'_, Shard> {
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_of(&self, place: &Place) -> MutexGuard<'_, Shard> {
        // Fibonacci hashing: the upper bits depend on all bits of the offset.
        self.lock((place.offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SHARD_COUNT)
    }

    /// The slot is kept until evicted.
    pub(crate) fn slot(&self, block: &BlockRef) -> Arc<Slot> {
        let place = Place::of(block);
        let cost = cost(block);
        let used = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut shard = self.lock_of(&place);
        let Shard { slots, by_use } = &mut *shard;
        by_use.insert(used, place);
        let (slot, grown) = match slots.get_mut(&place) {
            Some(kept) => {
                by_use.remove(&std::mem::replace(&mut kept.used, used));
                let grown = if kept.is_settled { 0 } else { left(cost, kept.cost) };
                kept.cost += grown;
                (Arc::clone(&kept.slot), grown)
            }
            None => {
                let slot = Arc::new(Slot::new(place));
                slots.insert(place, Kept { slot: Arc::clone(&slot), used, cost, is_settled: false });
                (slot, cost)
            }
        };
        // While the shard is locked: the block must be counted before another thread evicts it.
        self.len.fetch_add(grown, Ordering::Relaxed);
        drop(shard);
        if grown > 0 {
            self.make_room(used);
        }
        slot
    }

    /// The estimate may be wrong: prefixes may be longer than requested, and buffers longer than
    /// their contents.
    pub(crate) fn settle(&self, slot: &Slot, memory_len: usize) {
        let mut shard = self.lock_of(slot.place());
        let kept = shard.slots.get_mut(slot.place());
        // A slot that is not in the cache (any more) is counted by its owner.
        let Some(kept) = kept.filter(|kept| std::ptr::eq(&*kept.slot, slot)) else { return };
        let before = std::mem::replace(&mut kept.cost, memory_len as u64 + SLOT_LEN);
        kept.is_settled = true;
        let (cost, used) = (kept.cost, kept.used);
        if cost > before {
            self.len.fetch_add(cost - before, Ordering::Relaxed);
        } else {
            self.len.fetch_sub(before - cost, Ordering::Relaxed);
        }
        drop(shard);
        if cost > before {
            self.make_room(used);
        }
    }

    /// `len` of the `total` bytes of a block were used and are unlikely to be needed again. Once
    /// all were, the block is evicted early, because reused memory is faster than more memory.
    pub(crate) fn use_up(&self, slot: &Slot, len: u64, total: u64) {
        if !slot.use_up(len, total) {
            return;
        }
        let place = *slot.place();
        let Some(used) = self.lock_of(&place).slots.get(&place).map(|kept| kept.used) else { return };
        let mut used_up = self.used_up.lock().unwrap_or_else(PoisonError::into_inner);
        used_up.blocks.push_back((place, used, total + SLOT_LEN));
        used_up.len += total + SLOT_LEN;
        while used_up.len > USED_UP_LEN_MAX
            && let Some((place, used, cost)) = used_up.blocks.pop_front()
        {
            used_up.len -= cost;
            let mut shard = self.lock_of(&place);
            // Unless the block was requested since.
            if shard.slots.get(&place).is_some_and(|kept| kept.used == used)
                && let Some(kept) = shard.slots.remove(&place)
            {
                shard.by_use.remove(&used);
                self.len.fetch_sub(kept.cost, Ordering::Relaxed);
            }
        }
    }

    /// Evicts the oldest blocks until the rest fits, but none that was requested at `newest` or
    /// later.
    fn make_room(&self, newest: u64) {
        while self.len.load(Ordering::Relaxed) > self.len_max {
            let first = |index: usize| Some((*self.lock(index).by_use.first_key_value()?.0, index));
            let oldest = (0..SHARD_COUNT).filter_map(first).min();
            let Some((_, index)) = oldest.filter(|(used, _)| *used < newest) else { return };
            let mut shard = self.lock(index);
            let Some((_, place)) = shard.by_use.pop_first() else { continue };
            let Some(kept) = shard.slots.remove(&place) else { continue };
            self.len.fetch_sub(kept.cost, Ordering::Relaxed);
            drop(shard);
            self.tally.evictions.add(1);
            if kept.slot.is_ahead() && kept.slot.is_decoded() {
                self.tally.ahead_wasted.add(1);
            }
        }
    }
}

/// Bytes, estimated.
fn cost(block: &BlockRef) -> u64 {
    u64::from(block.decoded_len) + SLOT_LEN
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_codec::DecodedLen;

    fn block(offset: u64, decoded_len: u32) -> BlockRef {
        BlockRef { decoded_len, ..BlockRef::stored(offset, 10) }
    }

    fn of_len(len_max: u64) -> BlockCache {
        BlockCache::new(len_max, Arc::default())
    }

    fn kept(cache: &BlockCache) -> usize {
        cache.shards.iter().map(|shard| shard.lock().unwrap().slots.len()).sum()
    }

    #[test]
    fn keeps_as_many_blocks_as_the_budget_holds() {
        let cache = of_len(40 * cost(&block(0, 1 << 20)));
        for index in 0..100 {
            cache.slot(&block(index << 17, 1 << 20));
        }
        assert_eq!(kept(&cache), 40);
        let tiny = of_len(100 * SLOT_LEN);
        for index in 0..1000 {
            tiny.slot(&block(index, 0));
        }
        assert_eq!(kept(&tiny), 100);
    }

    #[test]
    fn a_block_costs_what_it_takes_in_memory() {
        let cache = of_len(10 * (1000 + SLOT_LEN));
        let slots: Vec<_> = (0..10).map(|index| cache.slot(&block(index << 17, 1000))).collect();
        assert_eq!(kept(&cache), 10);
        // Half as long, so more blocks fit.
        slots.iter().for_each(|slot| cache.settle(slot, 500));
        for index in 10..13 {
            cache.slot(&block(index << 17, 1000));
        }
        assert_eq!(kept(&cache), 13);
        // A longer prefix is requested, but the memory in use counts.
        cache.slot(&block(9 << 17, 1 << 20));
        assert_eq!(kept(&cache), 13);
        // Longer: the oldest are evicted, and an evicted block counts for nothing.
        cache.settle(&slots[9], 5000);
        let left = kept(&cache);
        assert!(left < 13, "{left}");
        cache.settle(&slots[0], 1 << 20);
        assert_eq!(kept(&cache), left);
        assert!(cache.len.load(Ordering::Relaxed) <= cache.len_max());
    }

    #[test]
    fn the_block_just_requested_stays_even_without_a_budget() {
        let cache = of_len(0);
        for index in 0..10 {
            let slot = cache.slot(&block(index << 17, 1000));
            assert!(Arc::ptr_eq(&slot, &cache.slot(&block(index << 17, 1000))));
            assert_eq!(kept(&cache), 1);
        }
    }

    #[test]
    fn used_up_blocks_are_evicted_early() {
        let cache = of_len(1 << 30);
        let blocks: Vec<_> = (0..100).map(|index| block(index << 17, 1 << 20)).collect();
        let slots: Vec<_> = blocks.iter().map(|block| cache.slot(block)).collect();
        for slot in &slots {
            cache.use_up(slot, 1 << 19, 1 << 20);
        }
        assert_eq!(kept(&cache), 100);
        // Requested again after it was used up, so it stays.
        cache.use_up(&slots[0], 1 << 19, 1 << 20);
        cache.slot(&blocks[0]);
        for slot in &slots[1..] {
            cache.use_up(slot, 1 << 19, 1 << 20);
        }
        assert!(Arc::ptr_eq(&slots[0], &cache.slot(&blocks[0])));
        assert!((2..=3).contains(&kept(&cache)), "{}", kept(&cache));
        let len: u64 = cache
            .shards
            .iter()
            .flat_map(|s| s.lock().unwrap().slots.values().map(|kept| kept.cost).collect::<Vec<_>>())
            .sum();
        assert_eq!(cache.len.load(Ordering::Relaxed), len);
    }

    #[test]
    fn a_block_in_use_outlives_those_that_are_not() {
        let cache = of_len(64 * cost(&block(0, 1000)));
        let hot = cache.slot(&block(0, 1000));
        for index in 1..1000 {
            cache.slot(&block(index << 12, 1000));
            assert!(Arc::ptr_eq(&hot, &cache.slot(&block(0, 1000))), "after {index} others");
        }
    }

    #[test]
    fn prefixes_of_one_block_are_one_block_and_cost_what_the_longest_costs() {
        let cache = of_len(1 << 30);
        let prefix = |decoded_len| BlockRef { decodes_to: DecodedLen::Prefix, ..block(0, decoded_len) };
        let slot = cache.slot(&prefix(1000));
        for len in [10, 5000, 4000] {
            assert!(Arc::ptr_eq(&slot, &cache.slot(&prefix(len))));
        }
        assert_eq!(cache.len.load(Ordering::Relaxed), cost(&prefix(5000)));
        assert!(!Arc::ptr_eq(&slot, &cache.slot(&BlockRef { zero_padded: true, ..prefix(10) })));
    }
}

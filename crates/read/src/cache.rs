//! A budget for decoded blocks: which are kept, and which make room.

use crate::block::Place;
use crate::counters::Tally;
use crate::slot::Slot;
use packfs_codec::BlockRef;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maps that are locked apart from each other.
const SHARD_COUNT: usize = 16;
/// What a slot costs besides the block in it, in bytes; about.
const SLOT_LEN: u64 = 256;
/// Bytes of blocks that are kept although all of them were used: files with the same contents may
/// lie close together.
const USED_UP_LEN_MAX: u64 = 2 << 20;

/// Decoded blocks by where they are stored; the least recently used are dropped first.
pub(crate) struct BlockCache {
    shards: Vec<Mutex<Shard>>,
    /// Counts what is asked for, to know what was asked for last.
    clock: AtomicU64,
    /// Bytes that all shards keep.
    len: AtomicU64,
    len_max: u64,
    used_up: Mutex<UsedUp>,
    tally: Arc<Tally>,
}

/// Blocks of which every byte was used, and when they were asked for last.
#[derive(Default)]
struct UsedUp {
    /// Each with what it costs.
    blocks: VecDeque<(Place, u64, u64)>,
    /// What keeping them costs, in bytes.
    len: u64,
}

#[derive(Default)]
struct Shard {
    slots: HashMap<Place, Kept>,
    /// The same blocks by when they were last asked for.
    by_use: BTreeMap<u64, Place>,
}

struct Kept {
    slot: Arc<Slot>,
    used: u64,
    /// What it costs, in bytes.
    cost: u64,
    /// Whether that is what its memory takes; otherwise it is what is expected of it.
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

    /// Most bytes that are kept.
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

    /// The slot of a block; it stays until others are needed more.
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
                let grown = if kept.is_settled { 0 } else { cost.saturating_sub(kept.cost) };
                kept.cost += grown;
                (Arc::clone(&kept.slot), grown)
            }
            None => {
                let slot = Arc::new(Slot::new(place));
                slots.insert(place, Kept { slot: Arc::clone(&slot), used, cost, is_settled: false });
                (slot, cost)
            }
        };
        // While the shard is locked: whoever drops the block must find it counted.
        self.len.fetch_add(grown, Ordering::Relaxed);
        drop(shard);
        if grown > 0 {
            self.make_room(used);
        }
        slot
    }

    /// Says what the decoded block of a slot takes in memory, which may be more or less than was
    /// expected: beginnings of blocks are longer than asked for, buffers longer than what is in
    /// them.
    pub(crate) fn settle(&self, slot: &Slot, memory_len: usize) {
        let mut shard = self.lock_of(slot.place());
        let kept = shard.slots.get_mut(slot.place());
        // A slot that is not kept here, or not any more, is for its owner to count.
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

    /// Says that `len` of the `total` bytes of a block were used and will hardly be needed again.
    /// When all were, the block is dropped soon, though there may be room for it: memory that is
    /// used again is faster than more memory.
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
            // Unless somebody has asked for it since.
            if shard.slots.get(&place).is_some_and(|kept| kept.used == used)
                && let Some(kept) = shard.slots.remove(&place)
            {
                shard.by_use.remove(&used);
                self.len.fetch_sub(kept.cost, Ordering::Relaxed);
            }
        }
    }

    /// Drops the oldest blocks until the rest fits, but none that was asked for at `newest` or
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

/// What keeping a block costs, in bytes.
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
        // Half as long: there is room for more.
        slots.iter().for_each(|slot| cache.settle(slot, 500));
        for index in 10..13 {
            cache.slot(&block(index << 17, 1000));
        }
        assert_eq!(kept(&cache), 13);
        // More is wanted of it, but what is there is what counts.
        cache.slot(&block(9 << 17, 1 << 20));
        assert_eq!(kept(&cache), 13);
        // Longer: the oldest make room, and one that is gone already counts for nothing.
        cache.settle(&slots[9], 5000);
        let left = kept(&cache);
        assert!(left < 13, "{left}");
        cache.settle(&slots[0], 1 << 20);
        assert_eq!(kept(&cache), left);
        assert!(cache.len.load(Ordering::Relaxed) <= cache.len_max());
    }

    #[test]
    fn the_block_just_asked_for_stays_even_without_a_budget() {
        let cache = of_len(0);
        for index in 0..10 {
            let slot = cache.slot(&block(index << 17, 1000));
            assert!(Arc::ptr_eq(&slot, &cache.slot(&block(index << 17, 1000))));
            assert_eq!(kept(&cache), 1);
        }
    }

    #[test]
    fn blocks_that_are_used_up_make_room_before_they_have_to() {
        let cache = of_len(1 << 30);
        let blocks: Vec<_> = (0..100).map(|index| block(index << 17, 1 << 20)).collect();
        let slots: Vec<_> = blocks.iter().map(|block| cache.slot(block)).collect();
        for slot in &slots {
            cache.use_up(slot, 1 << 19, 1 << 20);
        }
        assert_eq!(kept(&cache), 100);
        // Asked for again after it was used up: stays.
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

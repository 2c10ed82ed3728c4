//! Decoded blocks: one decode however many wait for it, and a budget for those that are kept.

use crate::block;
use crate::buffers::{Buffer, Buffers};
use packfs_codec::Decoders;
use packfs_core::{BlockRef, ErrorKind, Image, Result};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Maps that are locked apart from each other.
const SHARD_COUNT: usize = 16;
/// What a slot costs besides the block in it, in bytes; about.
const SLOT_LEN: u64 = 256;
/// Bytes of blocks that are kept although all of them were used: files with the same contents may lie close together.
const USED_UP_LEN_MAX: u64 = 2 << 20;

/// One block, decoded by whoever asks first.
pub(crate) struct Slot {
    block: BlockRef,
    /// Whether workers were told of it.
    announced: AtomicBool,
    /// Bytes that were used, those used several times counted each time.
    used_len: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

enum State {
    Empty,
    Decoding,
    Done(Result<Arc<Buffer>>),
}

impl Slot {
    pub(crate) fn new(block: BlockRef) -> Self {
        Slot {
            block,
            announced: AtomicBool::new(false),
            used_len: AtomicU64::new(0),
            state: Mutex::new(State::Empty),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn block(&self) -> &BlockRef {
        &self.block
    }

    /// The decoded block: decodes it, or waits for whoever does.
    pub(crate) fn get(
        &self,
        image: &dyn Image,
        decoders: &mut Decoders,
        buffers: &Arc<Buffers>,
    ) -> Result<Arc<Buffer>> {
        let mut state = self.lock();
        loop {
            match &*state {
                State::Done(done) => return done.clone(),
                State::Decoding => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                State::Empty => break,
            }
        }
        *state = State::Decoding;
        drop(state);
        let release = ReleaseOnPanic(self);
        let done = read(image, decoders, &self.block, buffers).map(Arc::new);
        std::mem::forget(release);
        // A disk that fails may answer when asked again; a damaged block stays damaged.
        let retry = matches!(&done, Err(error) if error.kind() == ErrorKind::Io);
        *self.lock() = if retry { State::Empty } else { State::Done(done.clone()) };
        self.changed.notify_all();
        done
    }

    /// Decodes the block unless somebody has or does.
    pub(crate) fn prefetch(&self, image: &dyn Image, decoders: &mut Decoders, buffers: &Arc<Buffers>) {
        let is_empty = matches!(*self.lock(), State::Empty);
        if is_empty {
            // A failure is kept for whoever needs the block.
            let _ = self.get(image, decoders, buffers);
        }
    }

    /// Whether this is the first time that workers are to be told of the block.
    pub(crate) fn announce(&self) -> bool {
        !self.announced.swap(true, Ordering::Relaxed)
    }

    /// Says that `len` of `total` bytes were used and will hardly be needed again; whether they were the last.
    fn use_up(&self, len: u64, total: u64) -> bool {
        let before = self.used_len.fetch_add(len, Ordering::Relaxed);
        before < total && before.saturating_add(len) >= total
    }
}

/// Lets the others try if the thread that decodes panics.
struct ReleaseOnPanic<'a>(&'a Slot);

impl Drop for ReleaseOnPanic<'_> {
    fn drop(&mut self) {
        *self.0.lock() = State::Empty;
        self.0.changed.notify_all();
    }
}

fn read(
    image: &dyn Image,
    decoders: &mut Decoders,
    block: &BlockRef,
    buffers: &Arc<Buffers>,
) -> Result<Buffer> {
    block::check(image, block)?;
    let mut stored = buffers.take(block.stored_len as usize);
    stored.bytes.resize(block.stored_len as usize, 0);
    image.read_exact_at(block.offset, &mut stored.bytes)?;
    if block.algorithm.is_none() {
        block::decode(decoders, block, &stored, &mut [])?;
        return Ok(stored);
    }
    let mut decoded = buffers.take(block.decoded_len as usize);
    // What is left in the buffer is overwritten, or cut off.
    decoded.bytes.resize(block.decoded_len as usize, 0);
    let len = block::decode(decoders, block, &stored, &mut decoded.bytes)?;
    decoded.bytes.truncate(len);
    Ok(decoded)
}

/// Decoded blocks by where they are stored; the least recently used are dropped first.
pub(crate) struct BlockCache {
    shards: Vec<Mutex<Shard>>,
    /// Counts what is asked for, to know what was asked for last.
    clock: AtomicU64,
    /// Bytes that all shards keep.
    len: AtomicU64,
    len_max: u64,
    used_up: Mutex<UsedUp>,
}

/// Blocks of which every byte was used, and when they were asked for last.
#[derive(Default)]
struct UsedUp {
    blocks: VecDeque<(BlockRef, u64)>,
    /// What keeping them costs, in bytes.
    len: u64,
}

#[derive(Default)]
struct Shard {
    slots: HashMap<BlockRef, Kept>,
    /// The same blocks by when they were last asked for.
    by_use: BTreeMap<u64, BlockRef>,
}

struct Kept {
    slot: Arc<Slot>,
    used: u64,
}

impl BlockCache {
    pub(crate) fn new(len_max: u64) -> Self {
        let shards = (0..SHARD_COUNT).map(|_| Mutex::default()).collect();
        BlockCache {
            shards,
            clock: AtomicU64::new(0),
            len: AtomicU64::new(0),
            len_max,
            used_up: Mutex::default(),
        }
    }

    fn lock(&self, index: usize) -> MutexGuard<'_, Shard> {
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_of(&self, block: &BlockRef) -> MutexGuard<'_, Shard> {
        // Fibonacci hashing: the upper bits depend on all bits of the offset.
        self.lock((block.offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SHARD_COUNT)
    }

    /// The slot of a block; it stays until others are needed more.
    pub(crate) fn slot(&self, block: &BlockRef) -> Arc<Slot> {
        let used = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut shard = self.lock_of(block);
        let Shard { slots, by_use } = &mut *shard;
        by_use.insert(used, *block);
        if let Some(kept) = slots.get_mut(block) {
            by_use.remove(&std::mem::replace(&mut kept.used, used));
            return Arc::clone(&kept.slot);
        }
        let slot = Arc::new(Slot::new(*block));
        slots.insert(*block, Kept { slot: Arc::clone(&slot), used });
        self.len.fetch_add(cost(block), Ordering::Relaxed);
        drop(shard);
        self.make_room(used);
        slot
    }

    /// Says that `len` of the `total` bytes of a block were used and will hardly be needed again. When all were, the block is dropped
    /// soon, though there may be room for it: memory that is used again is faster than more memory.
    pub(crate) fn use_up(&self, slot: &Slot, len: u64, total: u64) {
        if !slot.use_up(len, total) {
            return;
        }
        let block = slot.block();
        let Some(used) = self.lock_of(block).slots.get(block).map(|kept| kept.used) else { return };
        let mut used_up = self.used_up.lock().unwrap_or_else(PoisonError::into_inner);
        used_up.blocks.push_back((*block, used));
        used_up.len += cost(block);
        while used_up.len > USED_UP_LEN_MAX
            && let Some((block, used)) = used_up.blocks.pop_front()
        {
            used_up.len -= cost(&block);
            let mut shard = self.lock_of(&block);
            // Unless somebody has asked for it since.
            if shard.slots.get(&block).is_some_and(|kept| kept.used == used) {
                shard.slots.remove(&block);
                shard.by_use.remove(&used);
                self.len.fetch_sub(cost(&block), Ordering::Relaxed);
            }
        }
    }

    /// Drops the oldest blocks until the rest fits, but none that was asked for at `newest` or later.
    fn make_room(&self, newest: u64) {
        while self.len.load(Ordering::Relaxed) > self.len_max {
            let first = |index: usize| Some((*self.lock(index).by_use.first_key_value()?.0, index));
            let oldest = (0..SHARD_COUNT).filter_map(first).min();
            let Some((_, index)) = oldest.filter(|(used, _)| *used < newest) else { return };
            let mut shard = self.lock(index);
            if let Some((_, block)) = shard.by_use.pop_first() {
                shard.slots.remove(&block);
                self.len.fetch_sub(cost(&block), Ordering::Relaxed);
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

    fn block(offset: u64, decoded_len: u32) -> BlockRef {
        BlockRef { decoded_len, ..BlockRef::stored(offset, 10) }
    }

    fn kept(cache: &BlockCache) -> usize {
        cache.shards.iter().map(|shard| shard.lock().unwrap().slots.len()).sum()
    }

    #[test]
    fn keeps_as_many_blocks_as_the_budget_holds() {
        let cache = BlockCache::new(40 * cost(&block(0, 1 << 20)));
        for index in 0..100 {
            cache.slot(&block(index << 17, 1 << 20));
        }
        assert_eq!(kept(&cache), 40);
        let tiny = BlockCache::new(100 * SLOT_LEN);
        for index in 0..1000 {
            tiny.slot(&block(index, 0));
        }
        assert_eq!(kept(&tiny), 100);
    }

    #[test]
    fn the_block_just_asked_for_stays_even_without_a_budget() {
        let cache = BlockCache::new(0);
        for index in 0..10 {
            let slot = cache.slot(&block(index << 17, 1000));
            assert!(Arc::ptr_eq(&slot, &cache.slot(&block(index << 17, 1000))));
            assert_eq!(kept(&cache), 1);
        }
    }

    #[test]
    fn blocks_that_are_used_up_make_room_before_they_have_to() {
        let cache = BlockCache::new(1 << 30);
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
            .flat_map(|s| s.lock().unwrap().slots.keys().map(cost).collect::<Vec<_>>())
            .sum();
        assert_eq!(cache.len.load(Ordering::Relaxed), len);
    }

    #[test]
    fn a_block_in_use_outlives_those_that_are_not() {
        let cache = BlockCache::new(64 * cost(&block(0, 1000)));
        let hot = cache.slot(&block(0, 1000));
        for index in 1..1000 {
            cache.slot(&block(index << 12, 1000));
            assert!(Arc::ptr_eq(&hot, &cache.slot(&block(0, 1000))), "after {index} others");
        }
    }
}

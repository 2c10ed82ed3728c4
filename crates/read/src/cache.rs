//! Decoded blocks: one decode however many wait for it, and a budget for those that are kept.

use crate::block;
use crate::buffers::{Buffer, Buffers};
use packfs_codec::Decoders;
use packfs_core::{BlockRef, Image, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Maps that are locked apart from each other.
const SHARD_COUNT: usize = 16;

/// One block, decoded by whoever asks first.
pub(crate) struct Slot {
    block: BlockRef,
    /// Whether workers were told of it.
    announced: AtomicBool,
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
        *self.lock() = State::Done(done.clone());
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
    let mut stored = buffers.take();
    stored.bytes.resize(stored_len(image, block)?, 0);
    image.read_exact_at(block.offset, &mut stored.bytes)?;
    let mut decoded = buffers.take();
    block::decode(decoders, block, &stored.bytes, &mut decoded.bytes)?;
    Ok(decoded)
}

/// The block's stored length, checked against the image before anything is allocated for it.
fn stored_len(image: &dyn Image, block: &BlockRef) -> Result<usize> {
    if block.offset.saturating_add(u64::from(block.stored_len)) > image.len() {
        image.read_exact_at(image.len(), &mut [0])?;
    }
    Ok(block.stored_len as usize)
}

/// Decoded blocks by where they are stored.
pub(crate) struct BlockCache {
    shards: Vec<Mutex<Shard>>,
    /// Bytes each shard may keep.
    shard_len_max: u64,
}

#[derive(Default)]
struct Shard {
    slots: HashMap<BlockRef, Kept>,
    len: u64,
    clock: u64,
}

struct Kept {
    slot: Arc<Slot>,
    used: u64,
}

impl BlockCache {
    pub(crate) fn new(len_max: u64) -> Self {
        let shards = (0..SHARD_COUNT).map(|_| Mutex::default()).collect();
        BlockCache { shards, shard_len_max: len_max / SHARD_COUNT as u64 }
    }

    /// The slot of a block; it stays until others are needed more.
    pub(crate) fn slot(&self, block: &BlockRef) -> Arc<Slot> {
        let index = (block.offset ^ (block.offset >> 17)) as usize % SHARD_COUNT;
        let mut shard = self.shards[index].lock().unwrap_or_else(PoisonError::into_inner);
        shard.clock += 1;
        let clock = shard.clock;
        if let Some(kept) = shard.slots.get_mut(block) {
            kept.used = clock;
            return Arc::clone(&kept.slot);
        }
        shard.len += u64::from(block.decoded_len);
        let slot = Arc::new(Slot::new(*block));
        shard.slots.insert(*block, Kept { slot: Arc::clone(&slot), used: clock });
        shard.make_room(self.shard_len_max, block);
        slot
    }
}

impl Shard {
    /// Drops those that were not used for longest, but never the one just added.
    fn make_room(&mut self, len_max: u64, added: &BlockRef) {
        while self.len > len_max && self.slots.len() > 1 {
            let others = self.slots.iter().filter(|(block, _)| *block != added);
            let Some(oldest) = others.min_by_key(|(_, kept)| kept.used).map(|(block, _)| *block) else {
                return;
            };
            self.slots.remove(&oldest);
            self.len -= u64::from(oldest.decoded_len);
        }
    }
}

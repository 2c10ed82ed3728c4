//! Metadata blocks, decoded once and cached.
//!
//! The only code that decodes metadata. Invariant: a block is wholly inside the table
//! that it is read for, and decodes to 1 to 8,192 bytes.

use crate::endian::Endian;
use crate::fault::MetadataFault;
use crate::place::Place;
use crate::stored::{HeaderForm, Region, SQUASHFS_METADATA_SIZE, STORED_LEN_MAX, StoredBlock};
use packfs_codec::Algorithm;
use packfs_codec::Decoders;
use packfs_core::{Image, Result, usize_of};
use packfs_format::{SortedDirs, units::*};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct Block {
    /// 1 to 8,192 bytes.
    pub(crate) bytes: Vec<u8>,
    pub(crate) next: u64,
}

const SHARDS: usize = 16;
/// 16 shards of 32 blocks of 8 KiB: 4 MiB.
const SHARD_BLOCKS: usize = 32;

#[derive(Default)]
struct Shard {
    clock: u64,
    /// Offset in the image, time of last use, block.
    blocks: Vec<(u64, u64, Arc<Block>)>,
}

impl Shard {
    fn get(&mut self, at: u64) -> Option<Arc<Block>> {
        self.clock = self.clock.plus(1);
        let clock = self.clock;
        let row = self.blocks.iter_mut().find(|row| row.0 == at)?;
        row.1 = clock;
        Some(Arc::clone(&row.2))
    }

    fn put(&mut self, at: u64, block: &Arc<Block>, room: usize) {
        let row = (at, self.clock, Arc::clone(block));
        if self.blocks.len() < room {
            self.blocks.push(row);
        } else if let Some(oldest) = self.blocks.iter_mut().min_by_key(|row| row.1) {
            *oldest = row;
        }
    }
}

pub(crate) struct Metadata {
    image: Arc<dyn Image>,
    form: HeaderForm,
    algorithm: Algorithm,
    decoders: Mutex<Vec<Decoders>>,
    shards: [Mutex<Shard>; SHARDS],
    /// Capacity of all shards in blocks.
    room: AtomicUsize,
    sorted_dirs: SortedDirs,
}

impl Metadata {
    pub(crate) fn new(image: Arc<dyn Image>, form: HeaderForm, algorithm: Algorithm) -> Self {
        Metadata {
            image,
            form,
            algorithm,
            decoders: Mutex::default(),
            shards: Default::default(),
            room: AtomicUsize::new(SHARDS.times(SHARD_BLOCKS)),
            sorted_dirs: SortedDirs::default(),
        }
    }

    /// Drops all blocks and decoders, and bounds the cache to about `len_max` bytes.
    pub(crate) fn keep_at_most(&self, len_max: usize) {
        let room = (len_max / SQUASHFS_METADATA_SIZE).clamp(1, SHARDS.times(SHARD_BLOCKS));
        self.room.store(room, Ordering::Relaxed);
        self.shards.iter().for_each(|shard| *lock(shard) = Shard::default());
        *lock(&self.decoders) = Vec::new();
    }

    /// Directories whose listings were found to be sorted.
    pub(crate) fn sorted_dirs(&self) -> &SortedDirs {
        &self.sorted_dirs
    }

    pub(crate) fn image(&self) -> &dyn Image {
        &*self.image
    }

    #[inline]
    pub(crate) fn endian(&self) -> Endian {
        self.form.endian
    }

    pub(crate) fn block(&self, region: &Region, at: u64) -> Result<Arc<Block>> {
        // Adjacent blocks are a few KiB apart: higher bits spread them over all shards.
        let room = self.room.load(Ordering::Relaxed);
        let shard_count = room.div_ceil(SHARD_BLOCKS).clamp(1, SHARDS);
        let number = usize_of(at ^ (at >> 6) ^ (at >> 12)).remainder(shard_count);
        let Some(shard) = self.shards.get(number) else { return Err(region.outside(at)) };
        if let Some(block) = lock(shard).get(at) {
            // The block may have been read for another table with a different end.
            return if at < region.start || block.next > region.end {
                Err(region.outside(at))
            } else {
                Ok(block)
            };
        }
        let block = Arc::new(self.decode(region, at)?);
        lock(shard).put(at, &block, room.div_ceil(shard_count));
        Ok(block)
    }

    fn decode(&self, region: &Region, at: u64) -> Result<Block> {
        let mut room = [0; STORED_LEN_MAX];
        let stored = StoredBlock::read(&*self.image, self.form, region, at, &mut room)?;
        let bytes = if stored.compressed {
            self.decompress(Place::at(region.block_name, at), stored.bytes)?
        } else {
            stored.bytes.to_vec()
        };
        Ok(Block { bytes, next: stored.next })
    }

    fn decompress(&self, place: Place, stored: &[u8]) -> Result<Vec<u8>> {
        let mut decoders = lock(&self.decoders).pop().unwrap_or_default();
        let mut bytes = vec![0; SQUASHFS_METADATA_SIZE];
        let decoded = decoders.decompress(self.algorithm, stored, &mut bytes);
        lock(&self.decoders).push(decoders);
        let len = decoded.map_err(|reason| MetadataFault::MetadataDecode {
            place,
            algorithm: self.algorithm,
            reason,
        })?;
        if len == 0 {
            return Err(MetadataFault::MetadataEmpty { place }.into());
        }
        bytes.truncate(len);
        Ok(bytes)
    }
}

/// Ignores poisoning: the data is only a cache.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

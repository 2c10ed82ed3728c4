//! An image, its volume and what is shared between all who read it.

use crate::block::DecoderPool;
use crate::buffers::Buffers;
use crate::cache::BlockCache;
use packfs_core::{Image, Volume};
use std::sync::Arc;

/// How much an engine may use.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Worker threads; 0: one for each processor.
    pub jobs: usize,
    /// Bytes of decoded blocks kept for random access.
    pub cache_bytes: u64,
    /// What a whole hierarchy may hold.
    pub limits: Limits,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions { jobs: 0, cache_bytes: 32 << 20, limits: Limits::default() }
    }
}

/// What a whole hierarchy may hold before it is refused: an image that claims more is taken for an attack.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Names.
    pub entries_max: u64,
    /// Directories within each other.
    pub depth_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { entries_max: 100_000_000, depth_max: 65_536 }
    }
}

/// See the crate.
pub struct ReadEngine {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) volume: Arc<dyn Volume>,
    pub(crate) options: ReadOptions,
    pub(crate) cache: BlockCache,
    pub(crate) decoders: DecoderPool,
    pub(crate) buffers: Arc<Buffers>,
}

impl ReadEngine {
    /// Reads `volume`, which was opened from `image`.
    pub fn new(image: Arc<dyn Image>, volume: Arc<dyn Volume>, options: ReadOptions) -> Arc<ReadEngine> {
        let image = volume.data_image().unwrap_or(image);
        let cache = BlockCache::new(options.cache_bytes);
        Arc::new(ReadEngine {
            image,
            volume,
            options,
            cache,
            decoders: DecoderPool::default(),
            buffers: Arc::default(),
        })
    }

    /// The opened image.
    pub fn volume(&self) -> &dyn Volume {
        &*self.volume
    }

    /// The bytes that extents and blocks are read from.
    pub fn image(&self) -> &dyn Image {
        &*self.image
    }

    /// How many worker threads are used.
    pub fn jobs(&self) -> usize {
        match self.options.jobs {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            jobs => jobs.min(1024),
        }
    }
}

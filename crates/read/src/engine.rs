//! An image, its volume and the state shared by all readers.

use crate::blocks::Blocks;
use crate::counters::{CountedImage, Counters};
use crate::neighbours::Neighbours;
use crate::prefetch::Prefetch;
use packfs_core::{Image, Limits, thread_count};
use packfs_format::{Volume, units::*};
use std::sync::Arc;

/// Resources of an engine.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Worker threads; 0 means one per CPU.
    pub jobs: usize,
    /// Bytes of decoded blocks cached for random access.
    pub cache_bytes: u64,
    /// Bytes decoded ahead of sequential reads, at most a quarter of the cache. With 0, or one
    /// worker thread, nothing is decoded ahead.
    pub readahead_bytes: u64,
    /// The caller caches what it reads, as the kernel does for a mount, so blocks read sequentially
    /// are evicted first.
    pub is_kept_by_readers: bool,
    /// Limits of a whole hierarchy, and of its files.
    pub limits: Limits,
    /// Set to accept an image with a wrong checksum.
    pub ignore_checksum: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        let limits = Limits::default();
        ReadOptions {
            jobs: 0,
            cache_bytes: 32 << 20,
            readahead_bytes: 2 << 20,
            is_kept_by_readers: false,
            limits,
            ignore_checksum: false,
        }
    }
}

/// Reads an image. Shared between threads; worker threads start when there is something to decode
/// ahead.
pub struct ReadEngine {
    pub(crate) volume: Arc<dyn Volume>,
    pub(crate) options: ReadOptions,
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) prefetch: Prefetch,
    pub(crate) neighbours: Arc<Neighbours>,
    /// Counts metadata, too.
    pub(crate) counted: Option<Arc<CountedImage>>,
}

impl ReadEngine {
    /// Creates an engine for `volume`, which was opened from `image`.
    pub fn new(image: Arc<dyn Image>, volume: Arc<dyn Volume>, options: ReadOptions) -> Arc<ReadEngine> {
        Arc::new(ReadEngine::build(image, volume, options, None))
    }

    /// Creates an engine like [`ReadEngine::new`], for a volume opened from the counted image, so
    /// that reads of metadata are counted.
    pub fn counting(
        image: Arc<CountedImage>,
        volume: Arc<dyn Volume>,
        options: ReadOptions,
    ) -> Arc<ReadEngine> {
        Arc::new(ReadEngine::build(Arc::clone(&image) as Arc<dyn Image>, volume, options, Some(image)))
    }

    fn build(
        image: Arc<dyn Image>,
        volume: Arc<dyn Volume>,
        options: ReadOptions,
        counted: Option<Arc<CountedImage>>,
    ) -> ReadEngine {
        let image = volume.data_image().unwrap_or(image);
        let blocks = Arc::new(Blocks::new(image, options.cache_bytes));
        let workers = match thread_count(options.jobs) {
            _ if options.readahead_bytes == 0 => 0,
            1 => 0,
            jobs => jobs,
        };
        let prefetch = Prefetch::new(Arc::clone(&blocks), workers);
        ReadEngine { volume, options, blocks, prefetch, neighbours: Arc::default(), counted }
    }

    /// Returns the opened volume.
    pub fn volume(&self) -> &dyn Volume {
        &*self.volume
    }

    /// Returns the image that extents and blocks refer to.
    pub fn image(&self) -> &dyn Image {
        &*self.blocks.image
    }

    /// Returns the number of worker threads.
    pub fn jobs(&self) -> usize {
        thread_count(self.options.jobs)
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        let mut counters = self.blocks.tally.counters();
        if let Some(counted) = &self.counted {
            counters.metadata_reads = left(counted.reads(), counters.data_reads);
            counters.metadata_bytes = left(counted.bytes(), counters.data_bytes);
        }
        if let Some(fetched) = self.counted.as_ref().map_or_else(|| self.image().fetched(), |it| it.fetched())
        {
            counters.add_fetched(fetched);
        }
        counters
    }

    /// Bytes.
    pub(crate) fn window_max(&self) -> u64 {
        if !self.prefetch.is_on() {
            return 0;
        }
        self.options.readahead_bytes.min(self.blocks.cache.len_max() / 4)
    }
}

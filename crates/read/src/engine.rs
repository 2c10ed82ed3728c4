//! An image, its volume and what is shared between all who read it.

use crate::blocks::Blocks;
use crate::counters::{CountedImage, Counters};
use crate::neighbours::Neighbours;
use crate::prefetch::Prefetch;
use packfs_core::{Image, Limits, thread_count};
use packfs_format::Volume;
use std::sync::Arc;

/// How much an engine may use.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Worker threads; 0: one for each processor.
    pub jobs: usize,
    /// Bytes of decoded blocks kept for random access.
    pub cache_bytes: u64,
    /// Bytes decoded ahead of a reader that reads a file in order, at most a quarter of the cache;
    /// 0, or one worker thread: nothing is decoded ahead.
    pub readahead_bytes: u64,
    /// Whoever reads keeps what he has read, as a kernel does for a mount: blocks that were gone
    /// through in order make room.
    pub is_kept_by_readers: bool,
    /// What a whole hierarchy may hold, and its files.
    pub limits: Limits,
    /// A checksum of the image that is not that of its bytes is no fault.
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

/// See the crate. Shared between threads; worker threads start when there is something to decode
/// ahead.
pub struct ReadEngine {
    pub(crate) volume: Arc<dyn Volume>,
    pub(crate) options: ReadOptions,
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) prefetch: Prefetch,
    pub(crate) neighbours: Arc<Neighbours>,
    /// Everything that is read of the image, metadata too.
    pub(crate) counted: Option<Arc<CountedImage>>,
}

impl ReadEngine {
    /// Reads `volume`, which was opened from `image`.
    pub fn new(image: Arc<dyn Image>, volume: Arc<dyn Volume>, options: ReadOptions) -> Arc<ReadEngine> {
        Arc::new(ReadEngine::build(image, volume, options, None))
    }

    /// As [`ReadEngine::new`], where the volume was opened from the counted image, too: then what
    /// metadata costs is known.
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

    /// The opened image.
    pub fn volume(&self) -> &dyn Volume {
        &*self.volume
    }

    /// The bytes that extents and blocks are read from.
    pub fn image(&self) -> &dyn Image {
        &*self.blocks.image
    }

    /// How many worker threads are used.
    pub fn jobs(&self) -> usize {
        thread_count(self.options.jobs)
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        let mut counters = self.blocks.tally.counters();
        if let Some(counted) = &self.counted {
            counters.metadata_reads = counted.reads().saturating_sub(counters.data_reads);
            counters.metadata_bytes = counted.bytes().saturating_sub(counters.data_bytes);
        }
        counters
    }

    /// How far ahead of a reader blocks are decoded, in bytes.
    pub(crate) fn window_max(&self) -> u64 {
        if !self.prefetch.is_on() {
            return 0;
        }
        self.options.readahead_bytes.min(self.blocks.cache.len_max() / 4)
    }
}

//! What reading cost: counted while it is done, read at any time.

use packfs_core::{Image, Result};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What an engine has done since it was made. Bytes and counts only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Blocks that were wanted and found decoded.
    pub cache_hits: u64,
    /// Blocks that were wanted and had to be decoded first, by whoever wanted them or by somebody
    /// who was at it.
    pub cache_misses: u64,
    /// Blocks dropped from the cache to make room.
    pub evictions: u64,
    /// Times that a reader waited for another one's decode.
    pub waits: u64,
    /// How long they waited, together, in nanoseconds.
    pub wait_nanos: u64,
    /// Blocks decoded, whoever asked for it.
    pub decodes: u64,
    /// What they decoded to, in bytes.
    pub decoded_bytes: u64,
    /// Decodes that failed.
    pub decode_errors: u64,
    /// Reads of file data from the image.
    pub data_reads: u64,
    /// What they read, in bytes.
    pub data_bytes: u64,
    /// Reads of everything else: superblock, inodes, names, tables. 0 if the image is not counted
    /// (see [`CountedImage`]).
    pub metadata_reads: u64,
    /// What they read, in bytes.
    pub metadata_bytes: u64,
    /// Blocks that were decoded before anybody wanted them.
    pub readahead_blocks: u64,
    /// Those of them that were wanted later.
    pub readahead_used: u64,
    /// Those of them that were dropped before anybody wanted them.
    pub readahead_wasted: u64,
}

impl Counters {
    /// Every counter with its name, in the order above: for whoever prints them.
    pub fn rows(&self) -> [(&'static str, u64); 15] {
        [
            ("cache_hits", self.cache_hits),
            ("cache_misses", self.cache_misses),
            ("evictions", self.evictions),
            ("waits", self.waits),
            ("wait_nanos", self.wait_nanos),
            ("decodes", self.decodes),
            ("decoded_bytes", self.decoded_bytes),
            ("decode_errors", self.decode_errors),
            ("data_reads", self.data_reads),
            ("data_bytes", self.data_bytes),
            ("metadata_reads", self.metadata_reads),
            ("metadata_bytes", self.metadata_bytes),
            ("readahead_blocks", self.readahead_blocks),
            ("readahead_used", self.readahead_used),
            ("readahead_wasted", self.readahead_wasted),
        ]
    }
}

/// One counter.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters under way.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) hits: Count,
    pub(crate) misses: Count,
    pub(crate) evictions: Count,
    pub(crate) waits: Count,
    pub(crate) wait_nanos: Count,
    pub(crate) decodes: Count,
    pub(crate) decoded_bytes: Count,
    pub(crate) decode_errors: Count,
    pub(crate) data_reads: Count,
    pub(crate) data_bytes: Count,
    pub(crate) ahead: Count,
    pub(crate) ahead_used: Count,
    pub(crate) ahead_wasted: Count,
}

impl Tally {
    /// Counts a wait from its start on.
    pub(crate) fn waited(&self, start: Instant) {
        self.waits.add(1);
        self.wait_nanos.add(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }

    /// Counts a decode: how many bytes came of it, if any.
    pub(crate) fn decoded(&self, outcome: std::result::Result<usize, ()>) {
        match outcome {
            Ok(len) => {
                self.decodes.add(1);
                self.decoded_bytes.add(len as u64);
            }
            Err(()) => self.decode_errors.add(1),
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters {
            cache_hits: self.hits.get(),
            cache_misses: self.misses.get(),
            evictions: self.evictions.get(),
            waits: self.waits.get(),
            wait_nanos: self.wait_nanos.get(),
            decodes: self.decodes.get(),
            decoded_bytes: self.decoded_bytes.get(),
            decode_errors: self.decode_errors.get(),
            data_reads: self.data_reads.get(),
            data_bytes: self.data_bytes.get(),
            metadata_reads: 0,
            metadata_bytes: 0,
            readahead_blocks: self.ahead.get(),
            readahead_used: self.ahead_used.get(),
            readahead_wasted: self.ahead_wasted.get(),
        }
    }
}

/// An image whose reads are counted, whoever makes them.
pub struct CountedImage {
    image: Arc<dyn Image>,
    counts: Arc<Reads>,
}

#[derive(Debug, Default)]
struct Reads {
    reads: Count,
    bytes: Count,
    /// Length of all the images together.
    len: Count,
}

impl CountedImage {
    /// Counts the reads of `image`.
    pub fn new(image: Arc<dyn Image>) -> Arc<Self> {
        let counts = Arc::<Reads>::default();
        counts.len.add(image.len());
        Arc::new(CountedImage { image, counts })
    }

    /// Counts the reads of another image together with those of this one.
    pub fn beside(&self, image: Arc<dyn Image>) -> Arc<Self> {
        self.counts.len.add(image.len());
        Arc::new(CountedImage { image, counts: Arc::clone(&self.counts) })
    }

    /// How long this image and all beside it are together, in bytes.
    pub fn all_len(&self) -> u64 {
        self.counts.len.get()
    }

    /// How many reads there were.
    pub fn reads(&self) -> u64 {
        self.counts.reads.get()
    }

    /// What they read, in bytes.
    pub fn bytes(&self) -> u64 {
        self.counts.bytes.get()
    }
}

impl Image for CountedImage {
    fn len(&self) -> u64 {
        self.image.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let len = self.image.read_at(offset, buf)?;
        self.counts.reads.add(1);
        self.counts.bytes.add(len as u64);
        Ok(len)
    }

    fn next_data(&self, offset: u64) -> Result<Option<Range<u64>>> {
        self.image.next_data(offset)
    }

    fn name(&self) -> String {
        self.image.name()
    }
}

//! Counters of reading, updated continuously.

use packfs_core::{Fetched, Image, Result};
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Work of an engine since its creation. Values only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Counters {
    /// Requested blocks found in the cache.
    pub cache_hits: u64,
    /// Requested blocks that had to be decoded, by the reader or by another thread.
    pub cache_misses: u64,
    /// Blocks evicted from the cache.
    pub evictions: u64,
    /// Number of times a reader waited for another thread's decoding.
    pub waits: u64,
    /// Total waiting time, in nanoseconds.
    pub wait_nanos: u64,
    /// Blocks decoded, for any purpose.
    pub decodes: u64,
    /// Decoded bytes.
    pub decoded_bytes: u64,
    /// Failed decodings.
    pub decode_errors: u64,
    /// Reads of file data from the image.
    pub data_reads: u64,
    /// Bytes of these reads.
    pub data_bytes: u64,
    /// Reads of everything else: superblock, inodes, names, tables. 0 if the image is not counted
    /// (see [`CountedImage`]).
    pub metadata_reads: u64,
    /// Bytes of these reads.
    pub metadata_bytes: u64,
    /// Blocks decoded ahead of need.
    pub readahead_blocks: u64,
    /// Those of them that were requested later.
    pub readahead_used: u64,
    /// Those of them that were evicted unused.
    pub readahead_wasted: u64,
    /// Requests to a server; 0 for a local image, as are all that follow.
    pub remote_requests: u64,
    /// Waits for requests; requests sent together count once.
    pub remote_rounds: u64,
    /// Bytes received.
    pub remote_bytes: u64,
    /// Requests repeated after a failure.
    pub remote_retries: u64,
    /// Bytes taken from the cache on disk.
    pub remote_cached_bytes: u64,
}

impl Counters {
    pub(crate) fn add_fetched(&mut self, fetched: Fetched) {
        self.remote_requests += fetched.requests;
        self.remote_rounds += fetched.rounds;
        self.remote_bytes += fetched.bytes;
        self.remote_retries += fetched.retries;
        self.remote_cached_bytes += fetched.cached_bytes;
    }

    /// Returns every counter with its name, in the order above.
    pub fn rows(&self) -> [(&'static str, u64); 20] {
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
            ("remote_requests", self.remote_requests),
            ("remote_rounds", self.remote_rounds),
            ("remote_bytes", self.remote_bytes),
            ("remote_retries", self.remote_retries),
            ("remote_cached_bytes", self.remote_cached_bytes),
        ]
    }
}

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
    pub(crate) fn waited(&self, start: Instant) {
        self.waits.add(1);
        self.wait_nanos.add(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }

    /// `Ok` has the decoded length.
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
            readahead_blocks: self.ahead.get(),
            readahead_used: self.ahead_used.get(),
            readahead_wasted: self.ahead_wasted.get(),
            ..Counters::default()
        }
    }
}

/// An image whose reads are counted.
pub struct CountedImage {
    image: Arc<dyn Image>,
    counts: Arc<Reads>,
}

#[derive(Debug, Default)]
struct Reads {
    reads: Count,
    bytes: Count,
    /// Total length of the images.
    len: Count,
}

impl CountedImage {
    /// Counts the reads of `image`.
    pub fn new(image: Arc<dyn Image>) -> Arc<Self> {
        let counts = Arc::<Reads>::default();
        counts.len.add(image.len());
        Arc::new(CountedImage { image, counts })
    }

    /// Wraps another image, whose reads are added to those of this one.
    pub fn beside(&self, image: Arc<dyn Image>) -> Arc<Self> {
        self.counts.len.add(image.len());
        Arc::new(CountedImage { image, counts: Arc::clone(&self.counts) })
    }

    // With the added images.
    pub(crate) fn all_len(&self) -> u64 {
        self.counts.len.get()
    }

    /// Returns the number of reads.
    pub fn reads(&self) -> u64 {
        self.counts.reads.get()
    }

    /// Returns the number of bytes read.
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

    fn will_read(&self, ranges: &[Range<u64>]) {
        self.image.will_read(ranges);
    }

    fn fetched(&self) -> Option<Fetched> {
        self.image.fetched()
    }

    fn object(&self) -> Option<&dyn Any> {
        self.image.object()
    }

    fn check_unchanged(&self) -> Result<()> {
        self.image.check_unchanged()
    }

    fn name(&self) -> String {
        self.image.name()
    }
}

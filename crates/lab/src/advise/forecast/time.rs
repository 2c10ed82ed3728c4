//! How long the kernel takes to read a workload from an image on a device: its caches, readahead and requests, played through.
//!
//! What Linux does, as far as it decides the time (`fs/squashfs`, `fs/erofs`, `mm/readahead.c` of 6.1 to 6.18):
//!
//! - SquashFS reads a block when it is needed, by one request, and decodes it before it goes on; so reads and decoding add up. It keeps
//!   eight blocks of metadata and three shared blocks decoded; a metadata block takes two requests, the first for its length.
//! - EROFS reads metadata page by page and keeps what it read. A window of readahead becomes as few requests as its clusters lie
//!   together, and the next window is asked for when the reader comes to the first page of this one; so reads and decoding
//!   overlap in long files. Decoded clusters of the stream of tails stay in the page cache.

use super::device::{Device, Seconds};
use super::pattern::{FilePattern, Pattern, Place, Touch};
use serde::Serialize;
use std::collections::{HashSet, VecDeque};

/// Metadata blocks that SquashFS keeps decoded (`SQUASHFS_CACHED_BLKS`).
const SQUASHFS_METADATA_BLOCKS: usize = 8;
/// Shared blocks that it keeps decoded (`CONFIG_SQUASHFS_FRAGMENT_CACHE_SIZE`, by default).
const SQUASHFS_SHARED_BLOCKS: usize = 3;
/// The unit in which it reads (`SQUASHFS_DEVBLK_SIZE`).
const SQUASHFS_UNIT: u64 = 1024;
/// What a metadata block decodes to.
const SQUASHFS_METADATA_LEN: u64 = 8192;
/// A page, and a block of EROFS.
const PAGE: u64 = 4096;

/// How the image that is asked about differs from the one whose pattern is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scaling {
    /// Encoded data: stored bytes to stored bytes.
    pub(crate) data: f64,
    /// Metadata likewise.
    pub(crate) metadata: f64,
    /// Length of a cluster of tails as stored, in bytes.
    pub(crate) cluster: u64,
}

/// What the processor takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Cost {
    /// Seconds for each decoded byte, up to the reader's buffer.
    pub(crate) per_byte: f64,
    /// Seconds to open a file and to close it.
    pub(crate) per_file: f64,
}

/// How long a workload takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReadTime {
    /// Seconds from beginning to end.
    pub seconds: f64,
    /// Seconds in which the reader waited for the device.
    pub waiting: f64,
    /// Seconds of decoding and copying.
    pub processor: f64,
    /// Requests to the device.
    pub requests: u64,
    /// Bytes that were asked for.
    pub bytes: u64,
    /// Bytes that were decoded, as often as they were.
    pub decoded: u64,
}

/// Plays a workload through.
pub(crate) fn forecast(
    pattern: &Pattern,
    scaling: &Scaling,
    cost: &Cost,
    device: &mut dyn Device,
) -> ReadTime {
    let mut reading = Reading { scaling, cost, device, now: 0.0, sum: ReadTime::default() };
    if pattern.format == "erofs" {
        reading.erofs(pattern);
    } else {
        reading.squashfs(pattern);
    }
    ReadTime { seconds: reading.now, ..reading.sum }
}

struct Reading<'a> {
    scaling: &'a Scaling,
    cost: &'a Cost,
    device: &'a mut dyn Device,
    now: Seconds,
    sum: ReadTime,
}

impl Reading<'_> {
    /// Asks at a time; when it is there.
    fn ask(&mut self, at: Seconds, offset: u64, len: u64) -> Seconds {
        self.sum.requests += 1;
        self.sum.bytes += len;
        self.device.read(at, offset, len)
    }

    fn wait_for(&mut self, offset: u64, len: u64) {
        let there = self.ask(self.now, offset, len);
        self.sum.waiting += there - self.now;
        self.now = there;
    }

    fn decode(&mut self, bytes: u64) -> Seconds {
        let time = bytes as f64 * self.cost.per_byte;
        self.sum.decoded += bytes;
        self.sum.processor += time;
        time
    }

    fn stored(&self, touch: &Touch) -> u64 {
        let stored = u64::from(touch.stored);
        if touch.encoded { ((stored as f64 * self.scaling.data).ceil() as u64).max(1) } else { stored }
    }

    fn place(&self, offset: u64) -> u64 {
        (offset as f64 * self.scaling.data) as u64
    }

    fn open_file(&mut self) {
        self.now += self.cost.per_file;
        self.sum.processor += self.cost.per_file;
    }

    fn squashfs(&mut self, pattern: &Pattern) {
        let mut metadata = Kept::new(SQUASHFS_METADATA_BLOCKS);
        let mut shared = Kept::new(SQUASHFS_SHARED_BLOCKS);
        for file in &pattern.files {
            for place in &file.metadata {
                if metadata.use_again(place.offset) {
                    continue;
                }
                let offset = self.place(place.offset);
                let len = f64::from(place.len) * self.scaling.metadata;
                self.wait_for(floor(offset, SQUASHFS_UNIT), SQUASHFS_UNIT);
                self.wait_for(
                    floor(offset, SQUASHFS_UNIT),
                    (len as u64 + offset % SQUASHFS_UNIT).next_multiple_of(SQUASHFS_UNIT),
                );
                self.now += self.decode(SQUASHFS_METADATA_LEN);
            }
            for touch in &file.touches {
                if touch.shared && shared.use_again(touch.offset) {
                    continue;
                }
                let offset = self.place(touch.offset);
                let within = offset % SQUASHFS_UNIT;
                let len = (self.stored(touch) + within).next_multiple_of(SQUASHFS_UNIT);
                self.wait_for(offset - within, len);
                self.now += self.decode(u64::from(touch.decoded));
            }
            self.open_file();
        }
    }

    fn erofs(&mut self, pattern: &Pattern) {
        let mut pages = HashSet::new();
        let mut clusters = HashSet::new();
        let (decoded, stored) = pattern.packed;
        let cluster = self.scaling.cluster.max(PAGE);
        // So much of the stream a cluster decodes to.
        let span = decoded as f64 * cluster as f64 / (stored as f64 * self.scaling.data).max(1.0);
        let span = span.max(1.0).min((decoded as f64).max(1.0));
        let packed_from = pattern.files.iter().flat_map(|file| &file.touches);
        let packed_from =
            packed_from.filter(|touch| touch.packed_at.is_some()).map(|touch| touch.offset).min();
        let packed_from = self.place(packed_from.unwrap_or(0));
        for file in &pattern.files {
            for Place { offset, len } in &file.metadata {
                if pages.insert(*offset) {
                    self.wait_for(self.place(*offset), u64::from(*len));
                }
            }
            self.windows(file);
            for touch in &file.touches {
                let Some(at) = touch.packed_at else { continue };
                let last = ((at + touch.len.max(1) - 1) as f64 / span) as u64;
                for number in (at as f64 / span) as u64..=last {
                    if clusters.insert(number) {
                        self.wait_for(packed_from + number * cluster, cluster);
                        self.now += self.decode(span as u64);
                    }
                }
                // What is kept is copied to the file's own pages.
            }
            self.open_file();
        }
    }

    /// Reads the clusters that a file has to itself, window by window.
    fn windows(&mut self, file: &FilePattern) {
        let own = |touch: &&Touch| touch.packed_at.is_none();
        let ahead = self.device.read_ahead().max(PAGE);
        let mut rest = file.touches.iter().filter(own).peekable();
        // When the reader came to the window before, and when it was through with it.
        let (mut began, mut through) = (self.now, self.now);
        let mut window_end = 0;
        while let Some(first) = rest.peek() {
            window_end = (first.from / ahead * ahead + ahead).max(window_end + 1);
            let mut there = began;
            let mut decoded = 0;
            let mut request: Option<(u64, u64)> = None;
            while let Some(touch) = rest.next_if(|touch| touch.from < window_end) {
                decoded += u64::from(touch.decoded);
                let (offset, len) = (floor(self.place(touch.offset), PAGE), self.stored(touch));
                request = match request {
                    // Clusters that lie together are read together.
                    Some((start, asked)) if offset <= start + asked + 2 * PAGE && offset >= start => {
                        Some((start, asked + len))
                    }
                    Some((start, asked)) => {
                        there = there.max(self.ask(began, start, asked.next_multiple_of(PAGE)));
                        Some((offset, len))
                    }
                    None => Some((offset, len)),
                };
            }
            if let Some((start, asked)) = request {
                there = there.max(self.ask(began, start, asked.next_multiple_of(PAGE)));
            }
            let starts = there.max(through);
            self.sum.waiting += starts - through;
            through = starts + self.decode(decoded);
            began = starts;
        }
        self.now = self.now.max(through);
    }
}

fn floor(offset: u64, unit: u64) -> u64 {
    offset - offset % unit
}

/// A few things, of which the one that came first is dropped first, used or not (`squashfs_cache_get`).
struct Kept {
    places: VecDeque<u64>,
    most: usize,
}

impl Kept {
    fn new(most: usize) -> Self {
        Kept { places: VecDeque::with_capacity(most), most }
    }

    /// Whether it was there; it is from now on.
    fn use_again(&mut self, place: u64) -> bool {
        if self.places.contains(&place) {
            return true;
        }
        if self.places.len() == self.most {
            self.places.pop_front();
        }
        self.places.push_back(place);
        false
    }
}

/// A device that takes no time.
pub(crate) struct Memory;

impl Device for Memory {
    fn read(&mut self, now: Seconds, _offset: u64, _len: u64) -> Seconds {
        now
    }

    fn read_ahead(&self) -> u64 {
        128 << 10
    }
}

/// The pattern's own image.
pub(crate) fn as_it_is(cluster: u64) -> Scaling {
    Scaling { data: 1.0, metadata: 1.0, cluster }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A millisecond a request, and one for each MiB.
    struct Slow(Seconds);

    impl Device for Slow {
        fn read(&mut self, now: Seconds, _offset: u64, len: u64) -> Seconds {
            self.0 = self.0.max(now) + 1e-3 + len as f64 / 1048576.0 * 1e-3;
            self.0
        }

        fn read_ahead(&self) -> u64 {
            128 << 10
        }
    }

    const K: u64 = 1 << 10;

    fn touch(offset: u64, from: u64, shared: bool, packed_at: Option<u64>) -> Touch {
        let len = 128 * K;
        let decoded = len as u32;
        Touch { offset, stored: 64 << 10, decoded, from, len, shared, encoded: true, packed_at }
    }

    fn pattern(format: &str, files: Vec<Vec<Touch>>) -> Pattern {
        let files = files.into_iter().map(|touches| FilePattern { metadata: Vec::new(), touches }).collect();
        Pattern { format: format.into(), files, packed: (0, 0) }
    }

    const COST: Cost = Cost { per_byte: 1e-3 / 131072.0, per_file: 0.0 };

    #[test]
    fn squashfs_waits_and_decodes_in_turn() {
        let own = (0..8).map(|n| touch(n * 64 * K, n * 128 * K, false, None)).collect();
        let time = forecast(&pattern("squashfs", vec![own]), &as_it_is(0), &COST, &mut Slow(0.0));
        assert_eq!((time.requests, time.bytes), (8, 512 * K));
        assert!((time.seconds - 8.0 * (1e-3 + 0.0625e-3 + 1e-3)).abs() < 1e-9, "{time:?}");
    }

    #[test]
    fn erofs_reads_ahead_while_it_decodes() {
        let own: Vec<Touch> = (0..8).map(|n| touch(n * 64 * K, n * 128 * K, false, None)).collect();
        let time = forecast(&pattern("erofs", vec![own]), &as_it_is(64 * K), &COST, &mut Slow(0.0));
        let alone = 8.0 * (1e-3 + 0.0625e-3 + 1e-3);
        assert!(time.seconds < alone * 0.65, "{time:?}");
        assert!(time.seconds >= 8.0 * 1.0625e-3, "{time:?}");
    }

    #[test]
    fn a_fourth_shared_block_pushes_the_first_out_of_squashfs_and_none_out_of_erofs() {
        let files = |packed: bool| {
            let of = |n: u64| vec![touch(n * 64 * K, 0, true, packed.then_some(n * 128 * K))];
            [0, 1, 2, 0, 3, 1, 0].map(of).to_vec()
        };
        let time = forecast(&pattern("squashfs", files(false)), &as_it_is(0), &COST, &mut Slow(0.0));
        // 0 1 2, 0 again, 3 pushes 0 out, 1 is still there, 0 pushes it out.
        assert_eq!(time.requests, 5);
        let mut erofs = pattern("erofs", files(true));
        erofs.packed = (4 * 128 * K, 4 * 64 * K);
        let time = forecast(&erofs, &as_it_is(64 * K), &COST, &mut Slow(0.0));
        assert_eq!(time.requests, 4);
    }

    #[test]
    fn a_denser_codec_reads_less_and_decodes_as_much() {
        let own: Vec<Touch> = (0..8).map(|n| touch(n * 64 * K, n * 128 * K, false, None)).collect();
        let all = pattern("squashfs", vec![own]);
        let full = forecast(&all, &as_it_is(0), &COST, &mut Slow(0.0));
        let half = forecast(&all, &Scaling { data: 0.5, metadata: 0.5, cluster: 0 }, &COST, &mut Slow(0.0));
        assert_eq!((half.bytes, half.decoded), (full.bytes / 2, full.decoded));
        assert!(half.seconds < full.seconds);
    }
}

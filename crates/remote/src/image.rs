//! Image over the blocks of an object.

use crate::blocks::{Block, Blocks};
use crate::object::Object;
use crate::opening::Beginning;
use crate::options::RemoteOptions;
use crate::origin::Origin;
use crate::plan::{BLOCK_LEN, blocks_of, requests};
use crate::s3::S3Object;
use crate::store::Entry;
use crate::version::{Validator, Version};
use packfs_core::{Error, Fetched, Image, Place, Result, usize_of};
use std::any::Any;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Requests sent at once by one reader.
const PARALLEL: usize = 8;
/// Most blocks fetched for one read or hint at once.
const BATCH_MAX: u64 = 256;
/// Most blocks fetched ahead of a sequence of reads; all sequences share a quarter of the memory.
const WINDOW_MAX: u64 = 128;
/// Sequences that are followed at once.
const STREAMS_MAX: usize = 8;

/// Fetches ahead of reads that run at once.
const AHEAD_MAX: usize = 4;
/// Requests that each of them sends at once.
const AHEAD_PARALLEL: usize = 4;
/// Blocks that readers of one sequence may lie behind the first of them.
const BEHIND_MAX: u64 = 32;

/// An object on a server, as an image.
pub struct RemoteImage {
    shared: Arc<Shared>,
}

/// An image as its readers and the threads that fetch ahead share it.
struct Shared {
    object: Object,
    version: Version,
    state: Mutex<State>,
    /// Notified when blocks came, or did not.
    came: Condvar,
    entry: Option<Entry>,
}

struct State {
    blocks: Blocks,
    /// Blocks that a thread is fetching.
    in_flight: HashSet<u64>,
    /// Sequences of reads, the last one last: several readers take turns, and metadata lies apart
    /// from data.
    streams: VecDeque<Stream>,
    /// Fetches ahead of reads that are running.
    fetches_ahead: usize,
}

/// A sequence of reads; all figures are blocks.
struct Stream {
    /// Start of the last read, or a little before it.
    at: u64,
    /// End of the furthest read.
    end: u64,
    /// End of what was fetched.
    next: u64,
    /// Length of the last fetch ahead.
    window: u64,
}

/// Blocks that a thread fetches; others wait for them.
struct Claim {
    image: Arc<Shared>,
    blocks: Vec<u64>,
    is_ahead: bool,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut state = self.image.state();
        for block in &self.blocks {
            state.in_flight.remove(block);
        }
        if self.is_ahead {
            state.fetches_ahead = state.fetches_ahead.saturating_sub(1);
        }
        drop(state);
        self.image.came.notify_all();
    }
}

impl RemoteImage {
    /// Opens the object that a URL names: `http://`, `https://`, or `s3://BUCKET/KEY`.
    ///
    /// Errors: `Usage` for a wrong URL; `Io` if the server does not answer; `Failed` if it refuses
    /// access, has no such object, or has no ranges.
    pub fn open<'a>(url: impl Into<Place<'a>>, options: RemoteOptions) -> Result<Self> {
        RemoteImage::of(Object::new(url.into(), options)?)
    }

    /// Opens an object.
    ///
    /// Errors: as [`RemoteImage::open`].
    pub(crate) fn of(object: Object) -> Result<Self> {
        let identity = object.origin.identity();
        let cache = object.options.cache().map(Path::to_owned);
        let limit = object.options.cache_len;
        let known = cache.as_deref().and_then(|dir| Entry::newest(dir, &identity, limit));
        if object.options.is_offline {
            let Some((version, entry)) = known else {
                let error = object.refused("it is not in the cache, and --offline is given");
                return Err(error.hint("packfs cache ls lists what is there"));
            };
            return Ok(RemoteImage { shared: Arc::new(Shared::new(object, version, Some(entry))) });
        }
        let beginning = object.begin(known.as_ref().map(|(version, _)| version))?;
        let Beginning { version, head, tail } = beginning;
        let entry = match (known, cache) {
            (Some((known, entry)), _) if known == version => Some(entry),
            (_, Some(dir)) => Entry::create(&dir, &identity, &object.shown, &version, limit),
            (_, None) => None,
        };
        let shared = Shared::new(object, version, entry);
        shared.keep(0, &head);
        if let Some((start, bytes)) = tail {
            shared.keep(start, &bytes);
        }
        Ok(RemoteImage { shared: Arc::new(shared) })
    }

    /// Returns a warning for the user: a server that does not tell the version of the object, or a
    /// cache that is not used.
    pub fn warning(&self) -> Option<String> {
        if let Some(warning) = self.shared.object.options.cache_warning() {
            return Some(warning);
        }
        let is_blind = self.shared.version.validator == Validator::Length && self.shared.version.len > 0;
        is_blind.then(|| {
            format!(
                "{}: the server sends neither ETag nor Last-Modified: a change of the image while it is open \
                 is noticed only if its length changes",
                self.shared.object.shown
            )
        })
    }

    /// Returns the place of an object in S3.
    pub(crate) fn s3_place(&self) -> Option<&S3Object> {
        match &self.shared.object.origin {
            Origin::S3(place) => Some(place),
            _ => None,
        }
    }

    /// Returns the entity tag of the version that was opened.
    pub(crate) fn etag(&self) -> Option<&str> {
        match &self.shared.version.validator {
            Validator::ETag(tag) => Some(tag),
            _ => None,
        }
    }

    /// Returns the error for an object that changed, and has all later reads fail with it.
    pub(crate) fn changed(&self) -> Error {
        self.shared.object.changed()
    }
}

impl Shared {
    fn new(object: Object, version: Version, entry: Option<Entry>) -> Self {
        let state = State {
            blocks: Blocks::new(object.options.memory_len),
            in_flight: HashSet::new(),
            streams: VecDeque::new(),
            fetches_ahead: 0,
        };
        Shared { object, version, state: Mutex::new(state), came: Condvar::new(), entry }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the whole blocks of bytes at an offset.
    fn keep(&self, start: u64, bytes: &[u8]) {
        let end = start.saturating_add(bytes.len() as u64);
        for number in start.div_ceil(BLOCK_LEN)..end.div_ceil(BLOCK_LEN) {
            let range = self.range_of(number);
            let part = range.start.saturating_sub(start)..range.end.saturating_sub(start);
            if let Some(block) = bytes.get(usize_of(part.start)..usize_of(part.end)) {
                self.state().blocks.insert(number, Block::from(block));
                self.save(number, block);
            }
        }
    }

    fn save(&self, number: u64, block: &[u8]) {
        if let Some(entry) = &self.entry {
            entry.write(number, block);
        }
    }

    /// Returns the place of a block, which is shorter at the end.
    fn range_of(&self, number: u64) -> Range<u64> {
        let start = number.saturating_mul(BLOCK_LEN).min(self.version.len);
        start..start.saturating_add(BLOCK_LEN).min(self.version.len)
    }

    /// Returns blocks, fetching those that are missing.
    fn blocks(self: &Arc<Self>, range: Range<u64>) -> Result<Vec<Block>> {
        let mut found: Vec<Option<Block>> = range.clone().map(|_| None).collect();
        let mut is_followed = false;
        loop {
            let mut state = self.state();
            let mut missing = Vec::new();
            for (number, block) in range.clone().zip(&mut found) {
                if block.is_none() {
                    *block = state.blocks.get(number);
                }
                if block.is_none() {
                    missing.push(number);
                }
            }
            let free: Vec<u64> =
                missing.iter().copied().filter(|number| !state.in_flight.contains(number)).collect();
            let claim = (!free.is_empty()).then(|| self.claim(&mut state, free, false));
            if !std::mem::replace(&mut is_followed, true) {
                let ahead = self.follow(&mut state, &range);
                if !ahead.is_empty() {
                    let claim = self.claim(&mut state, ahead, true);
                    drop(state);
                    claim.fetch_ahead();
                    state = self.state();
                }
            }
            if missing.is_empty() {
                return Ok(found.into_iter().flatten().collect());
            }
            let Some(claim) = claim else {
                let is_awaited = |number: &u64| state.in_flight.contains(number);
                if missing.iter().any(is_awaited) {
                    // The fetching thread ends: each request has a time limit.
                    drop(self.came.wait(state).unwrap_or_else(PoisonError::into_inner));
                }
                continue;
            };
            drop(state);
            let (blocks, error) = self.bring(&claim.blocks, false);
            for (number, block) in blocks {
                let index = number.checked_sub(range.start).map(usize_of);
                if let Some(place) = index.and_then(|index| found.get_mut(index)) {
                    *place = Some(block);
                }
            }
            let is_missing = |number: &u64| {
                let index = number.checked_sub(range.start).map(usize_of);
                index.and_then(|index| found.get(index)).is_some_and(Option::is_none)
            };
            if let Some(error) = error.filter(|_| claim.blocks.iter().any(is_missing)) {
                return Err(error);
            }
        }
    }

    fn claim(self: &Arc<Self>, state: &mut State, blocks: Vec<u64>, is_ahead: bool) -> Claim {
        state.in_flight.extend(&blocks);
        state.fetches_ahead = state.fetches_ahead.saturating_add(usize::from(is_ahead));
        Claim { image: Arc::clone(self), blocks, is_ahead }
    }

    /// Returns the blocks to fetch ahead of a read, if it continues a sequence: the further that
    /// goes, the more. They are due when half of the last ones are read.
    fn follow(&self, state: &mut State, read: &Range<u64>) -> Vec<u64> {
        let continues = |stream: &Stream| (stream.at..=stream.next).contains(&read.start);
        let known = state.streams.iter().position(continues);
        let known = known.and_then(|index| state.streams.remove(index));
        let is_known = known.is_some();
        let mut stream = known.unwrap_or(Stream { at: read.start, end: read.end, next: read.end, window: 0 });
        let mut ahead = Vec::new();
        if is_known && read.end > stream.end {
            stream.next = stream.next.max(read.end);
            let is_due = read.end.saturating_add(stream.window / 2) >= stream.next;
            if is_due && state.fetches_ahead < AHEAD_MAX {
                let count = read.end.saturating_sub(read.start);
                stream.window = stream.window.max(count).saturating_mul(2).min(self.window_max(state));
                let end = stream.next.saturating_add(stream.window).min(self.version.len.div_ceil(BLOCK_LEN));
                let is_free =
                    |number: &u64| !state.blocks.holds(*number) && !state.in_flight.contains(number);
                ahead = (stream.next..end).filter(is_free).collect();
                stream.next = stream.next.max(end);
            }
            stream.end = read.end;
            stream.at = stream.at.max(read.start.saturating_sub(BEHIND_MAX));
        }
        state.streams.push_back(stream);
        if state.streams.len() > STREAMS_MAX {
            state.streams.pop_front();
        }
        ahead
    }

    /// Returns the most blocks to fetch ahead of one of the sequences. They must stay until they
    /// are read, while others fetch and are read.
    fn window_max(&self, state: &State) -> u64 {
        let others = state.streams.iter().filter(|stream| stream.window > 0).count() as u64;
        let quarter = self.object.options.memory_len / BLOCK_LEN / 4;
        WINDOW_MAX.min(quarter.checked_div(others.saturating_add(1)).unwrap_or_default())
    }

    /// Brings blocks from the disk or the server. Some may come although others do not. Each may be
    /// read as soon as it is here.
    fn bring(&self, wanted: &[u64], is_ahead: bool) -> (Vec<(u64, Block)>, Option<Error>) {
        let mut blocks = Vec::new();
        let mut missing = Vec::new();
        for &number in wanted {
            match self.saved(number) {
                Some(block) => blocks.push((number, block)),
                None => missing.push(number),
            }
        }
        self.arrive(&blocks);
        if missing.is_empty() {
            return (blocks, None);
        }
        if self.object.options.is_offline {
            let error = self.object.refused("this part is not in the cache, and --offline is given");
            return (blocks, Some(error));
        }
        if !is_ahead {
            self.object.counts.round();
        }
        let pieces = requests(missing);
        let next = AtomicUsize::new(0);
        let came = Mutex::new((blocks, None));
        let work = || {
            while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                let fetched = self.fetch(piece, is_ahead);
                if let Ok(blocks) = &fetched {
                    self.arrive(blocks);
                }
                let mut came = came.lock().unwrap_or_else(PoisonError::into_inner);
                match fetched {
                    Ok(blocks) => came.0.extend(blocks),
                    Err(error) => came.1 = Some(error),
                }
            }
        };
        let parallel = if is_ahead { AHEAD_PARALLEL } else { PARALLEL };
        std::thread::scope(|scope| {
            for _ in 1..pieces.len().min(parallel) {
                // Without another thread, this one does all.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        came.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives blocks to all who wait for them.
    fn arrive(&self, blocks: &[(u64, Block)]) {
        let mut state = self.state();
        for (number, block) in blocks {
            state.blocks.insert(*number, Arc::clone(block));
            state.in_flight.remove(number);
        }
        drop(state);
        self.came.notify_all();
    }

    fn saved(&self, number: u64) -> Option<Block> {
        let entry = self.entry.as_ref()?;
        let range = self.range_of(number);
        let block = entry.read(number, usize_of(range.end.saturating_sub(range.start)))?;
        self.object.counts.cached(block.len());
        Some(block.into())
    }

    fn fetch(&self, piece: &Range<u64>, is_ahead: bool) -> Result<Vec<(u64, Block)>> {
        let last = self.range_of(piece.end.saturating_sub(1));
        let range = self.range_of(piece.start).start..last.end;
        let mut bytes = vec![0; usize_of(range.end.saturating_sub(range.start))];
        if !is_ahead {
            self.object.fetch(&self.version, range.start, &mut bytes)?;
        } else if !self.object.fetch_ahead(&self.version, range.start, &mut bytes) {
            // The read that needs them asks again, and tells why they do not come.
            return Ok(Vec::new());
        }
        let blocks = bytes.chunks(usize_of(BLOCK_LEN));
        Ok(piece
            .clone()
            .zip(blocks)
            .map(|(number, block)| {
                self.save(number, block);
                (number, Block::from(block))
            })
            .collect())
    }
}

impl Claim {
    /// Fetches the blocks in a thread of its own.
    fn fetch_ahead(self) {
        // Without another thread, reads fetch what they need.
        let _ = std::thread::Builder::new().spawn(move || drop(self.image.bring(&self.blocks, true)));
    }
}

impl Image for RemoteImage {
    fn len(&self) -> u64 {
        self.shared.version.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let len = usize_of(self.shared.version.len.saturating_sub(offset)).min(buf.len());
        let mut done = 0;
        while done < len {
            let start = offset.saturating_add(done as u64);
            let wanted = blocks_of(&(start..offset.saturating_add(len as u64)));
            let batch = wanted.start..wanted.end.min(wanted.start.saturating_add(BATCH_MAX));
            let mut skip = usize_of(start % BLOCK_LEN);
            for block in self.shared.blocks(batch)? {
                let rest = buf.get_mut(done..len).unwrap_or_default();
                let part = block.get(skip..).unwrap_or_default();
                let count = part.len().min(rest.len());
                if let (Some(to), Some(from)) = (rest.get_mut(..count), part.get(..count)) {
                    to.copy_from_slice(from);
                }
                done = done.saturating_add(count);
                skip = 0;
            }
        }
        Ok(len)
    }

    fn will_read(&self, ranges: &[Range<u64>]) {
        let clipped = ranges.iter().map(|range| range.start.min(self.len())..range.end.min(self.len()));
        let most = usize_of(BATCH_MAX.min(self.shared.object.options.memory_len / BLOCK_LEN / 2));
        let mut state = self.shared.state();
        let free = |number: &u64| !state.blocks.holds(*number) && !state.in_flight.contains(number);
        let wanted: BTreeSet<u64> =
            clipped.flat_map(|range| blocks_of(&range).filter(free).take(most)).take(most).collect();
        if wanted.is_empty() {
            return;
        }
        let claim = self.shared.claim(&mut state, wanted.into_iter().collect(), false);
        drop(state);
        // Errors are left to the reads.
        drop(self.shared.bring(&claim.blocks, false));
    }

    fn fetched(&self) -> Option<Fetched> {
        Some(self.shared.object.counts.fetched())
    }

    fn object(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn name(&self) -> String {
        self.shared.object.shown.clone()
    }
}

//! Block by block: each is read when it is needed, and decoded before the reader goes on.

use super::{PAGE, Reading, floor};
use crate::advise::forecast::pattern::Pattern;
use packfs::KernelCache;
use std::collections::{HashSet, VecDeque};

impl Reading<'_> {
    /// Plays it through; does nothing for a driver that keeps pages.
    pub(super) fn blocks(&mut self, pattern: &Pattern) {
        let KernelCache::Blocks { metadata, shared, header_len, unit, edges_since } = pattern.cache else {
            return;
        };
        let (mut metadata, mut shared) = (Kept::new(metadata), Kept::new(shared));
        let mut edges = Edges {
            unit: self.device.block_len().max(unit),
            are_kept: edges_since.is_some_and(|since| self.device.is_since(since)),
            pages: HashSet::new(),
        };
        for read in &pattern.mounted {
            metadata.use_again(read.offset);
        }
        for file in &pattern.files {
            for read in &file.metadata {
                if metadata.use_again(read.offset) {
                    continue;
                }
                let offset = self.place(read.offset);
                let len = (f64::from(read.stored) * self.scaling.metadata) as u64;
                if header_len > 0 {
                    self.read_blocks(&mut edges, offset, header_len);
                }
                self.read_blocks(&mut edges, offset + header_len, len.max(1));
                self.now += self.decode(u64::from(read.decoded));
            }
            for block in &file.blocks {
                if block.shared && shared.use_again(block.read.offset) {
                    continue;
                }
                self.read_blocks(&mut edges, self.place(block.read.offset), self.stored(block));
                self.now += self.decode(u64::from(block.read.decoded));
            }
            self.open_file();
        }
    }

    /// Reads the device's blocks in which these bytes lie, but for pages that were kept
    /// (`squashfs_bio_read`).
    fn read_blocks(&mut self, edges: &mut Edges, offset: u64, len: u64) {
        let Edges { unit, are_kept, pages } = edges;
        let unit = *unit;
        let (start, end) = (floor(offset, unit), (offset + len).next_multiple_of(unit));
        if unit != PAGE || !*are_kept {
            self.wait_for(start, end - start);
            return;
        }
        let mut at = start;
        while at < end {
            let missing = (at..end).step_by(PAGE as usize).take_while(|page| !pages.contains(page)).count();
            let len = missing as u64 * PAGE;
            if len > 0 {
                self.wait_for(at, len);
            }
            at += len + PAGE;
        }
        if offset > start {
            pages.insert(start);
        }
        if offset + len < end && (end - PAGE > start || offset == start) {
            pages.insert(end - PAGE);
        }
    }
}

struct Edges {
    /// Least unit of a request.
    unit: u64,
    are_kept: bool,
    pages: HashSet<u64>,
}

/// A few things, of which the one that came first is dropped first, used or not
/// (`squashfs_cache_get`).
struct Kept {
    places: VecDeque<u64>,
    most: usize,
}

impl Kept {
    fn new(most: usize) -> Self {
        Kept { places: VecDeque::with_capacity(most), most }
    }

    /// True if it was there; it is from now on.
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

//! SquashFS reading (`fs/squashfs/{block,cache}.c`).

use super::{PAGE, Reading, floor};
use crate::advise::forecast::pattern::Pattern;
use std::collections::{HashSet, VecDeque};

/// Metadata blocks that SquashFS keeps decoded (`SQUASHFS_CACHED_BLKS`).
const SQUASHFS_METADATA_BLOCKS: usize = 8;
/// Shared blocks that it keeps decoded (`CONFIG_SQUASHFS_FRAGMENT_CACHE_SIZE`, by default).
const SQUASHFS_SHARED_BLOCKS: usize = 3;
/// The unit in which it reads at the least (`SQUASHFS_DEVBLK_SIZE`).
const SQUASHFS_UNIT: u64 = 1024;
/// What stands before a metadata block: its length.
const METADATA_HEADER_LEN: u64 = 2;
/// What a metadata block decodes to.
const SQUASHFS_METADATA_LEN: u64 = 8192;

impl Reading<'_> {
    /// Plays it through.
    pub(super) fn squashfs(&mut self, pattern: &Pattern) {
        let mut metadata = Kept::new(SQUASHFS_METADATA_BLOCKS);
        let mut shared = Kept::new(SQUASHFS_SHARED_BLOCKS);
        let mut edges = HashSet::new();
        for place in &pattern.mounted {
            metadata.use_again(place.offset);
        }
        for file in &pattern.files {
            for place in &file.metadata {
                if metadata.use_again(place.offset) {
                    continue;
                }
                let offset = self.place(place.offset);
                let len = (f64::from(place.len) * self.scaling.metadata) as u64;
                self.read_blocks(&mut edges, offset, METADATA_HEADER_LEN);
                self.read_blocks(&mut edges, offset + METADATA_HEADER_LEN, len.max(1));
                self.now += self.decode(SQUASHFS_METADATA_LEN);
            }
            for touch in &file.touches {
                if touch.shared && shared.use_again(touch.offset) {
                    continue;
                }
                self.read_blocks(&mut edges, self.place(touch.offset), self.stored(touch));
                self.now += self.decode(u64::from(touch.decoded));
            }
            self.open_file();
        }
    }

    /// Reads the device's blocks in which these bytes lie, but for pages that were kept (`squashfs_bio_read`).
    fn read_blocks(&mut self, kept: &mut HashSet<u64>, offset: u64, len: u64) {
        let unit = self.device.block_len().max(SQUASHFS_UNIT);
        let (start, end) = (floor(offset, unit), (offset + len).next_multiple_of(unit));
        if unit != PAGE || !self.device.keeps_edges() {
            self.wait_for(start, end - start);
            return;
        }
        let mut at = start;
        while at < end {
            let missing = (at..end).step_by(PAGE as usize).take_while(|page| !kept.contains(page)).count();
            let len = missing as u64 * PAGE;
            if len > 0 {
                self.wait_for(at, len);
            }
            at += len + PAGE;
        }
        if offset > start {
            kept.insert(start);
        }
        if offset + len < end && (end - PAGE > start || offset == start) {
            kept.insert(end - PAGE);
        }
    }
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

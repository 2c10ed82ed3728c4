//! Read-ahead across files: decodes ahead of readers that go from file to file in disk order.
//!
//! A walk is detected by new blocks, each of another file than the last and a little after it on
//! disk. Only then are all blocks of the image looked up and sorted by position, in the background,
//! so that the next ones are known. Images with very many blocks are excluded: the list would cost
//! more memory than it saves time.

use packfs_codec::BlockRef;
use packfs_core::{FileType, Result};
use packfs_format::{DirCursor, ExtentFrom, InodeId, Volume, units::*};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Most walks tracked at a time: readers of different parts of the image.
const WALKS_MAX: usize = 4;
/// Longest distance to the next block of the same walk, in stored bytes.
const FORWARD_LEN_MAX: u64 = 512 << 10;
/// Longest distance backward: tails of files lie together, apart from other data.
const BACKWARD_LEN_MAX: u64 = 1 << 20;
/// Files in sequence before a walk is assumed.
const FILES_MIN: u32 = 3;
/// Initial length of read-ahead, in bytes.
const WINDOW_MIN: u64 = 256 << 10;
/// Most blocks in the list, 24 bytes each.
const BLOCKS_MAX: usize = 400_000;
/// Most names and extents looked up for it.
const STEPS_MAX: usize = 4_000_000;

type Map = Vec<BlockRef>;

#[derive(Default)]
pub(crate) struct Neighbours {
    walks: Mutex<Walks>,
    is_asked_for: AtomicBool,
    map: OnceLock<Map>,
}

#[derive(Default)]
struct Walks {
    walks: Vec<Walk>,
}

#[derive(Debug)]
struct Walk {
    file: InodeId,
    end: u64,
    files: u32,
    ahead: u64,
    ahead_len: u64,
    window: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    Nothing,
    /// Build the list of blocks by [`Neighbours::learn`], once.
    Learn,
    Decode(Vec<BlockRef>),
}

impl Neighbours {
    pub(crate) fn met(&self, file: InodeId, block: &BlockRef, window_max: u64) -> Advice {
        let mut walks = self.walks.lock().unwrap_or_else(PoisonError::into_inner);
        let walk = walks.met(file, block);
        if walk.files < FILES_MIN {
            return Advice::Nothing;
        }
        let Some(map) = self.map.get() else {
            let is_first = !self.is_asked_for.swap(true, Ordering::Relaxed);
            return if is_first { Advice::Learn } else { Advice::Nothing };
        };
        walk.next_of(map, window_max).map_or(Advice::Nothing, Advice::Decode)
    }

    /// Unreadable parts are omitted; their readers report the error.
    pub(crate) fn learn(&self, volume: &dyn Volume, is_over: &dyn Fn() -> bool) {
        if let Ok(Some(map)) = map(volume, is_over) {
            let _ = self.map.set(map);
        }
    }
}

impl Walks {
    fn met(&mut self, file: InodeId, block: &BlockRef) -> &mut Walk {
        let end = crate::block::stored_range(block).end;
        let goes_on = |walk: &Walk| {
            let nearest = left(walk.end, BACKWARD_LEN_MAX);
            let farthest = end_of(walk.end, FORWARD_LEN_MAX);
            (nearest..=farthest).contains(&block.offset)
        };
        let walk = match self.walks.iter().rposition(goes_on) {
            Some(index) => {
                let mut walk = self.walks.remove(index);
                // A walk steps back occasionally, to tails of files; going only backward is no
                // walk.
                walk.files = match (walk.file != file, block.offset >= walk.end) {
                    (true, true) => walk.files.plus(1),
                    (true, false) => left(walk.files, 1),
                    (false, _) => walk.files,
                };
                walk.file = file;
                walk.end = walk.end.max(end);
                walk.ahead_len = left(walk.ahead_len, block.decoded_len.into());
                walk
            }
            None => {
                if self.walks.len() >= WALKS_MAX {
                    self.walks.remove(0);
                }
                Walk { file, end, files: 0, ahead: end, ahead_len: 0, window: WINDOW_MIN }
            }
        };
        let index = self.walks.len();
        self.walks.push(walk);
        &mut self.walks[index]
    }
}

impl Walk {
    /// `None` until the blocks requested before are nearly reached.
    fn next_of(&mut self, map: &[BlockRef], window_max: u64) -> Option<Vec<BlockRef>> {
        self.ahead = self.ahead.max(self.end);
        if self.ahead_len > self.window / 2 {
            return None;
        }
        let start = map.partition_point(|block| block.offset < self.ahead);
        let mut next = Vec::new();
        for block in map.get(start..)? {
            if self.ahead_len >= self.window.min(window_max) {
                break;
            }
            self.ahead_len = self.ahead_len.plus(u64::from(block.decoded_len));
            self.ahead = end_of(block.offset, 1);
            next.push(*block);
        }
        self.window = (self.window * 2).min(window_max.max(WINDOW_MIN));
        Some(next)
    }
}

/// `None` if there are too many blocks, or the engine is closing.
fn map(volume: &dyn Volume, is_over: &dyn Fn() -> bool) -> Result<Option<Map>> {
    let mut map = Map::new();
    let mut dirs = vec![volume.root()];
    let mut seen = HashSet::from([volume.root()]);
    let mut step_count = 0;
    while let Some(dir) = dirs.pop() {
        if is_over() {
            return Ok(None);
        }
        let mut files = Vec::new();
        // A damaged directory contributes no blocks.
        let _ = volume.read_dir(dir, DirCursor::default(), &mut |entry, _| {
            match entry.file_type {
                FileType::Directory if seen.insert(entry.id) => dirs.push(entry.id),
                FileType::File => files.push(entry.id),
                _ => {}
            }
            step_count += 1;
            if step_count < STEPS_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        for file in files {
            let _ = volume.extents(file, 0..u64::MAX, &mut |extent| {
                if let ExtentFrom::Block { block, .. } = extent.from
                    && map.last() != Some(&block)
                {
                    map.push(block);
                }
                step_count += 1;
                let goes_on = map.len() <= BLOCKS_MAX && step_count < STEPS_MAX;
                if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
        }
        if map.len() > BLOCKS_MAX || step_count >= STEPS_MAX {
            return Ok(None);
        }
    }
    map.sort_unstable_by_key(|block| (block.offset, Reverse(block.decoded_len)));
    map.dedup_by_key(|block| block.offset);
    map.shrink_to_fit();
    Ok(Some(map))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_LEN: u32 = 128 << 10;

    fn block(index: u64) -> BlockRef {
        BlockRef { decoded_len: BLOCK_LEN, ..BlockRef::stored(index * 40_000, 40_000) }
    }

    fn neighbours() -> Neighbours {
        let neighbours = Neighbours::default();
        neighbours.map.set((0..1000).map(block).collect()).unwrap();
        neighbours
    }

    #[test]
    fn a_walk_gets_the_next_blocks_and_none_twice() {
        let neighbours = neighbours();
        let mut told = Vec::new();
        for index in 0..100 {
            match neighbours.met(InodeId(index), &block(index), 1 << 20) {
                Advice::Decode(blocks) => told.extend(blocks),
                advice => assert_eq!(advice, Advice::Nothing),
            }
        }
        assert!(told.is_sorted_by_key(|block| block.offset));
        assert!(told.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(told[0], block(u64::from(FILES_MIN) + 1));
        let last = told.last().unwrap().offset / 40_000;
        assert!((100..110).contains(&last), "{last}");
    }

    #[test]
    fn blocks_of_one_file_are_no_walk() {
        let neighbours = neighbours();
        for index in 0..100 {
            assert_eq!(neighbours.met(InodeId(1), &block(index), 1 << 20), Advice::Nothing);
        }
    }

    #[test]
    fn random_access_to_files_is_no_walk() {
        for stride in [331, 457, 617] {
            let neighbours = neighbours();
            for step in 0..300 {
                let advice = neighbours.met(InodeId(step), &block(step * stride % 1000), 1 << 20);
                assert_eq!(advice, Advice::Nothing, "{stride}, {step}");
            }
        }
    }

    #[test]
    fn backward_access_is_no_walk() {
        let neighbours = neighbours();
        for step in 0..300 {
            let advice = neighbours.met(InodeId(step), &block(999 - step), 1 << 20);
            assert_eq!(advice, Advice::Nothing, "{step}");
        }
    }

    #[test]
    fn the_list_is_requested_once_and_only_for_a_walk() {
        let neighbours = Neighbours::default();
        let advice: Vec<Advice> =
            (0..10).map(|index| neighbours.met(InodeId(index), &block(index), 1 << 20)).collect();
        assert_eq!(advice.iter().filter(|&advice| *advice == Advice::Learn).count(), 1);
        assert_eq!(advice[FILES_MIN as usize], Advice::Learn);
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let neighbours = neighbours();
        for offset in [u64::MAX, 0, u64::MAX - 10, u64::MAX] {
            let block = BlockRef { decoded_len: u32::MAX, ..BlockRef::stored(offset, u32::MAX) };
            for file in 0..8 {
                neighbours.met(InodeId(file), &block, u64::MAX);
            }
        }
    }
}

//! Decodes ahead of whoever walks an image: file after file, in the order in which their data lies
//! on the disk.
//!
//! A walk is told by blocks wanted for the first time, each for another file than the one before
//! and a little behind it on the disk. Then, and only then, all blocks of the image are looked up
//! and sorted by place, in the background; from there on the blocks that follow are known. Images
//! of very many blocks are left alone: the list would cost more memory than it is worth.

use packfs_codec::BlockRef;
use packfs_core::{FileType, Result};
use packfs_format::{DirCursor, ExtentFrom, InodeId, Volume};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Walks that are told apart: readers of different parts of the image.
const WALKS_MAX: usize = 4;
/// How far behind the last block the next one of the same walk lies at most, in stored bytes.
const FORWARD_LEN_MAX: u64 = 512 << 10;
/// How far in front of it: tails of files lie together, away from the rest.
const BACKWARD_LEN_MAX: u64 = 1 << 20;
/// Files that a walk goes through before it is believed.
const FILES_MIN: u32 = 3;
/// What is decoded ahead at first, in bytes.
const WINDOW_MIN: u64 = 256 << 10;
/// Blocks in the list at most: 24 bytes each.
const BLOCKS_MAX: usize = 400_000;
/// Names and extents looked at for it at most.
const STEPS_MAX: usize = 4_000_000;

/// All blocks of an image, by place.
type Map = Vec<BlockRef>;

/// See the module.
#[derive(Default)]
pub(crate) struct Neighbours {
    walks: Mutex<Walks>,
    is_asked_for: AtomicBool,
    map: OnceLock<Map>,
}

#[derive(Default)]
struct Walks {
    /// The one met last stands last.
    walks: Vec<Walk>,
}

#[derive(Debug)]
struct Walk {
    /// The file it was in last.
    file: InodeId,
    /// Up to where it has come on the disk.
    end: u64,
    /// How many files it went through.
    files: u32,
    /// Up to where blocks were asked for.
    ahead: u64,
    /// Bytes asked for that the walk has not come to.
    ahead_len: u64,
    window: u64,
}

/// What is to be done about a block that is wanted for the first time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    Nothing,
    /// The list of blocks is needed: [`Neighbours::learn`], once.
    Learn,
    /// These come next.
    Decode(Vec<BlockRef>),
}

impl Neighbours {
    /// Hears of a block that a file's reader wants for the first time that anybody wants it.
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

    /// Looks up all blocks of the image. What cannot be found is left out: whoever reads it will
    /// hear of it.
    pub(crate) fn learn(&self, volume: &dyn Volume, is_over: &dyn Fn() -> bool) {
        if let Ok(Some(map)) = map(volume, is_over) {
            let _ = self.map.set(map);
        }
    }
}

impl Walks {
    /// The walk that a block belongs to: one that it goes on, or a new one.
    fn met(&mut self, file: InodeId, block: &BlockRef) -> &mut Walk {
        let end = block.offset.saturating_add(u64::from(block.stored_len));
        let goes_on = |walk: &Walk| {
            let nearest = walk.end.saturating_sub(BACKWARD_LEN_MAX);
            let farthest = walk.end.saturating_add(FORWARD_LEN_MAX);
            (nearest..=farthest).contains(&block.offset)
        };
        let walk = match self.walks.iter().rposition(goes_on) {
            Some(index) => {
                let mut walk = self.walks.remove(index);
                // Who steps back now and then (to the tail of a file) walks, who does nothing else
                // does not.
                walk.files = match (walk.file != file, block.offset >= walk.end) {
                    (true, true) => walk.files.saturating_add(1),
                    (true, false) => walk.files.saturating_sub(1),
                    (false, _) => walk.files,
                };
                walk.file = file;
                walk.end = walk.end.max(end);
                walk.ahead_len = walk.ahead_len.saturating_sub(u64::from(block.decoded_len));
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
    /// The blocks that follow, if those asked for before are about to be reached.
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
            self.ahead_len = self.ahead_len.saturating_add(u64::from(block.decoded_len));
            self.ahead = block.offset.saturating_add(1);
            next.push(*block);
        }
        self.window = (self.window * 2).min(window_max.max(WINDOW_MIN));
        Some(next)
    }
}

/// All blocks of all files; `None` if there are too many, or nobody waits for them any more.
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
        // A directory that is damaged has no blocks that could be told.
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
    fn a_walk_from_file_to_file_is_told_what_comes_next_and_nothing_twice() {
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
    fn who_jumps_from_file_to_file_does_not_walk() {
        for stride in [331, 457, 617] {
            let neighbours = neighbours();
            for step in 0..300 {
                let advice = neighbours.met(InodeId(step), &block(step * stride % 1000), 1 << 20);
                assert_eq!(advice, Advice::Nothing, "{stride}, {step}");
            }
        }
    }

    #[test]
    fn who_goes_backwards_does_not_walk() {
        let neighbours = neighbours();
        for step in 0..300 {
            let advice = neighbours.met(InodeId(step), &block(999 - step), 1 << 20);
            assert_eq!(advice, Advice::Nothing, "{step}");
        }
    }

    #[test]
    fn the_list_is_asked_for_once_and_only_for_a_walk() {
        let neighbours = Neighbours::default();
        let advice: Vec<Advice> =
            (0..10).map(|index| neighbours.met(InodeId(index), &block(index), 1 << 20)).collect();
        assert_eq!(advice.iter().filter(|&advice| *advice == Advice::Learn).count(), 1);
        assert_eq!(advice[FILES_MIN as usize], Advice::Learn);
    }

    #[test]
    fn figures_at_the_end_of_all_numbers_overflow_nothing() {
        let neighbours = neighbours();
        for offset in [u64::MAX, 0, u64::MAX - 10, u64::MAX] {
            let block = BlockRef { decoded_len: u32::MAX, ..BlockRef::stored(offset, u32::MAX) };
            for file in 0..8 {
                neighbours.met(InodeId(file), &block, u64::MAX);
            }
        }
    }
}

//! Many threads over one engine.

use crate::made_up::{FILE, SyntheticImage, synthetic_image};
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{ErrorKind, FileType};
use packfs_format::{DirEntry, Extent, ExtentFrom, InodeId};
use packfs_read::ReadEngine;
use packfs_testkit::Random;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

const THREAD_COUNT: u64 = 8;

/// Runs `work` in several threads that start together.
fn together(work: impl Fn(u64) + Sync) {
    let barrier = Barrier::new(THREAD_COUNT as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREAD_COUNT {
            let (work, barrier) = (&work, &barrier);
            scope.spawn(move || {
                barrier.wait();
                work(thread);
            });
        }
    });
}

fn read_all(engine: &Arc<ReadEngine>, file: u64) -> packfs_core::Result<Vec<u8>> {
    let reader = engine.open_file(InodeId(FILE + file))?;
    let mut bytes = vec![0; reader.len() as usize];
    reader.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// Keeps only files made of blocks and holes.
fn blocks_only(mut made: SyntheticImage) -> SyntheticImage {
    let is_block = |extent: &Extent| !matches!(extent.from, ExtentFrom::Stored(_));
    let kept: Vec<bool> = made.volume.files.iter().map(|extents| extents.iter().all(is_block)).collect();
    let mut index = 0;
    made.volume.files.retain(|_| (kept[index], index += 1).0);
    index = 0;
    made.contents.retain(|_| (kept[index], index += 1).0);
    made
}

#[test]
fn concurrent_readers_of_the_same_files_decode_each_block_once() {
    let made = blocks_only(synthetic_image(21, 60));
    for jobs in [1, 4] {
        let engine = made.engine(jobs, 256 << 20);
        together(|_| {
            for (file, contents) in made.contents.iter().enumerate() {
                assert!(read_all(&engine, file as u64).unwrap() == *contents, "file {file}");
            }
        });
        let places: std::collections::HashSet<u64> = made
            .volume
            .files
            .iter()
            .flatten()
            .filter_map(|extent| match extent.from {
                ExtentFrom::Block { block, .. } => Some(block.offset),
                _ => None,
            })
            .collect();
        let counters = engine.counters();
        assert_eq!(counters.decodes, places.len() as u64, "{counters:?}");
        assert_eq!(counters.evictions, 0);
        assert!(counters.cache_hits > counters.cache_misses, "{counters:?}");
    }
}

#[test]
fn random_reads_equal_the_source_with_any_budget() {
    let made = synthetic_image(22, 80);
    for (jobs, cache_bytes, steps) in [(1, 0, 150), (4, 0, 150), (4, 100_000, 300), (2, 64 << 20, 600)] {
        let engine = made.engine(jobs, cache_bytes);
        together(|thread| {
            let mut random = Random::new(thread);
            for _ in 0..steps {
                let file = random.below(made.contents.len() as u64);
                let contents = &made.contents[file as usize];
                let reader = engine.open_file(InodeId(FILE + file)).unwrap();
                // Some reads jump, some continue.
                let mut offset = random.below(contents.len() as u64 + 1);
                for _ in 0..1 + random.below(5) {
                    let mut buf = vec![0; 1 + random.below(60_000) as usize];
                    let len = reader.read_at(offset, &mut buf).unwrap();
                    assert!(buf[..len] == contents[offset as usize..][..len], "file {file} at {offset}");
                    offset += len as u64;
                }
            }
        });
        let counters = engine.counters();
        assert!(counters.decode_errors == 0 && counters.decodes > 0, "{counters:?}");
    }
}

#[test]
fn the_cache_keeps_its_limit_and_counts_evictions() {
    let made = blocks_only(synthetic_image(23, 80));
    let engine = made.engine(1, 50_000);
    for file in 0..made.contents.len() {
        read_all(&engine, file as u64).unwrap();
    }
    let counters = engine.counters();
    assert!(counters.evictions > 0 && counters.evictions <= counters.cache_misses, "{counters:?}");
}

#[test]
fn a_damaged_block_fails_all_waiting_readers_and_is_decoded_again_for_later_ones() {
    let mut made = blocks_only(synthetic_image(24, 20));
    let damaged = made.volume.files.iter().position(|extents| !extents.is_empty()).unwrap();
    let block = made.volume.files[damaged].iter().find_map(|extent| match extent.from {
        ExtentFrom::Block { block, .. } => Some(block),
        _ => None,
    });
    let block = block.unwrap();
    made.volume.files[damaged] =
        vec![Extent { offset: 0, len: 1, from: ExtentFrom::Block { block, start: 0 } }];
    let sound = made.image.clone();
    made.image[block.offset as usize..][..9].fill(0xff);
    let engine = made.engine(4, 1 << 20);
    together(|_| {
        let error = read_all(&engine, damaged as u64).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    });
    let counters = engine.counters();
    assert!((1..=THREAD_COUNT).contains(&counters.decode_errors), "{counters:?}");
    assert_eq!(counters.decodes, 0, "{counters:?}");
    // Data outside the block reads as before.
    for (file, extents) in made.volume.files.iter().enumerate() {
        let is_other = |extent: &Extent| !matches!(extent.from, ExtentFrom::Block { block: other, .. } if other.offset == block.offset);
        if extents.iter().all(is_other) {
            assert!(read_all(&engine, file as u64).unwrap() == made.contents[file], "file {file}");
        }
    }
    // A disk that recovers is read again.
    made.image = sound;
    assert_eq!(read_all(&made.engine(1, 0), damaged as u64).unwrap().len(), 1);
}

#[test]
fn prefixes_of_one_block_share_one_decode() {
    let mut made = blocks_only(synthetic_image(25, 40));
    let is_long = |extent: &Extent| match extent.from {
        ExtentFrom::Block { block, .. } if block.decoded_len > 1000 => Some(block),
        _ => None,
    };
    let block = made.volume.files.iter().flatten().find_map(is_long).unwrap();
    let from = ExtentFrom::Block { block, start: 0 };
    made.volume.files = vec![vec![Extent { offset: 0, len: u64::from(block.decoded_len), from }]];
    let whole = read_all(&made.engine(1, 0), 0).unwrap();
    let prefix = |len: u32| {
        // As EROFS stores them: with leading zeros, so that the end of the data is the end of the
        // block.
        let block = BlockRef { decoded_len: len, decodes_to: DecodedLen::Prefix, zero_padded: true, ..block };
        vec![Extent { offset: 0, len: u64::from(len), from: ExtentFrom::Block { block, start: 0 } }]
    };
    made.volume.files = [10, 1000, 500, 1].map(prefix).into();
    let engine = made.engine(1, 1 << 20);
    for (file, len) in [10, 1000, 500, 1].into_iter().enumerate() {
        assert!(read_all(&engine, file as u64).unwrap() == whole[..len], "prefix of {len}");
    }
    let counters = engine.counters();
    assert_eq!((counters.decodes, counters.data_reads), (1, 1), "{counters:?}");
}

#[test]
fn sequential_reads_are_decoded_ahead_and_random_ones_are_not() {
    let made = synthetic_image(26, 60);
    let (file, contents) = made.contents.iter().enumerate().max_by_key(|(_, bytes)| bytes.len()).unwrap();
    let engine = made.engine(2, 64 << 20);
    let reader = engine.open_file(InodeId(FILE + file as u64)).unwrap();
    let mut all = Vec::new();
    let mut buf = vec![0; 20_000];
    while all.len() < contents.len() {
        let len = reader.read_at(all.len() as u64, &mut buf).unwrap();
        all.extend_from_slice(&buf[..len]);
    }
    assert!(all == *contents);
    let alone = made.engine(1, 64 << 20);
    read_all(&alone, file as u64).unwrap();
    assert_eq!(alone.counters().readahead_blocks, 0);
    assert!(engine.counters().decodes <= alone.counters().decodes, "never more than without");
}

/// Returns an image of files of one block each, in disk order, and their number.
fn walkable_image() -> (SyntheticImage, usize) {
    let mut made = synthetic_image(27, 120);
    let mut blocks: Vec<BlockRef> = made
        .volume
        .files
        .iter()
        .flatten()
        .filter_map(|extent| match extent.from {
            ExtentFrom::Block { block, .. } => Some(block),
            _ => None,
        })
        .collect();
    blocks.sort_by_key(|block| block.offset);
    blocks.dedup();
    let whole = |block: &BlockRef| {
        let from = ExtentFrom::Block { block: *block, start: 0 };
        vec![Extent { offset: 0, len: u64::from(block.decoded_len), from }]
    };
    made.volume.files = blocks.iter().map(whole).collect();
    let entry = |index: usize| DirEntry {
        name: format!("{index}").into_bytes(),
        id: InodeId(FILE + index as u64),
        file_type: FileType::File,
    };
    made.volume.dirs = vec![(0..blocks.len()).map(entry).collect()];
    (made, blocks.len())
}

#[test]
fn walking_files_in_disk_order_decodes_the_next_ones_ahead() {
    let (made, count) = walkable_image();
    let engine = made.engine(2, 64 << 20);
    let alone = made.engine(1, 64 << 20);
    let deadline = Instant::now() + Duration::from_secs(60);
    for file in 0..count as u64 {
        if file == 20 {
            // The list of blocks is built in the background; each further file is a chance to use
            // it.
            std::thread::sleep(Duration::from_millis(20));
        }
        if engine.counters().readahead_blocks == 0 && file > 20 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(read_all(&engine, file).unwrap() == read_all(&alone, file).unwrap(), "file {file}");
    }
    let counters = engine.counters();
    assert_eq!(counters.decodes, count as u64, "{counters:?}");
    assert!(counters.readahead_blocks > 0, "{counters:?}");
    assert_eq!(alone.counters().readahead_blocks, 0);
}

#[test]
fn reads_of_known_files_decode_nothing_ahead() {
    let (made, count) = walkable_image();
    let (engine, alone) = (made.engine(2, 64 << 20), made.engine(1, 64 << 20));
    for file in 0..count as u64 {
        if (20..40).contains(&file) {
            // Time to build the list of blocks, which a walk would use.
            std::thread::sleep(Duration::from_millis(20));
        }
        let wanted = read_all(&alone, file).unwrap();
        let mut buf = vec![0; wanted.len() + 1];
        let len = engine.read_at(InodeId(FILE + file), 0, &mut buf).unwrap();
        assert!(wanted == buf[..len], "file {file}");
    }
    assert_eq!(engine.counters().readahead_blocks, 0);
    let past_the_end = engine.read_at(InodeId(FILE), u64::MAX, &mut [0; 8]).unwrap();
    assert_eq!(past_the_end, 0);
}

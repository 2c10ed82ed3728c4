//! Random access.

use crate::made_up::{FILE, SyntheticImage, SyntheticVolume, synthetic_image};
use packfs_codec::Algorithm;
use packfs_codec::BlockRef;
use packfs_codec::{CodecSettings, Lz4Settings, encoder};
use packfs_core::{ContentId, Contents, ErrorKind};
use packfs_format::{Extent, ExtentFrom, InodeId};
use packfs_read::ReadOptions;
use packfs_testkit::Random;
use std::io::{Read, Seek, SeekFrom};
use std::sync::atomic::Ordering;

#[test]
fn random_reads_agree_from_many_threads() {
    let made = synthetic_image(5, 40);
    let engine = made.engine(2, 1 << 20);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (engine, contents) = (&engine, &made.contents);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                for _ in 0..300 {
                    let index = random.below(contents.len() as u64);
                    let bytes = &contents[index as usize];
                    let reader = engine.open_file(InodeId(FILE + index)).unwrap();
                    assert_eq!(reader.len(), bytes.len() as u64);
                    let offset = random.below(bytes.len() as u64 + 10);
                    let mut buf = vec![1; random.below(5000) as usize];
                    let len = reader.read_at(offset, &mut buf).unwrap();
                    let expected = bytes.get(offset as usize..).unwrap_or_default();
                    assert_eq!(buf[..len], expected[..len]);
                    assert_eq!(len, buf.len().min(expected.len()));
                }
            });
        }
    });
}

#[test]
fn a_reader_reads_and_seeks_like_any_file() {
    let made = synthetic_image(6, 40);
    let index = made.contents.iter().position(|bytes| bytes.len() > 1000).unwrap();
    let mut reader = made.engine(1, 0).open_file(InodeId(FILE + index as u64)).unwrap();
    let mut all = Vec::new();
    reader.read_to_end(&mut all).unwrap();
    assert!(all == made.contents[index]);
    assert_eq!(reader.seek(SeekFrom::End(-3)).unwrap(), all.len() as u64 - 3);
    let mut end = String::from("bytes: ").into_bytes();
    reader.read_to_end(&mut end).unwrap();
    assert_eq!(end[7..], all[all.len() - 3..]);
    assert!(reader.seek(SeekFrom::Current(i64::MIN)).is_err());
}

#[test]
fn contents_know_their_holes() {
    let made = synthetic_image(7, 60);
    let engine = made.engine(1, 0);
    for (index, extents) in made.volume.files.iter().enumerate() {
        let mut reader = engine.open(ContentId(FILE + index as u64)).unwrap();
        let mut offset = 0;
        let mut data = 0;
        while let Some(run) = reader.next_data(offset).unwrap() {
            assert!(run.start >= offset && run.end > run.start);
            data += run.end - run.start;
            offset = run.end;
        }
        let stored: u64 = extents.iter().filter(|e| e.from != ExtentFrom::Hole).map(|e| e.len).sum();
        assert_eq!(data, stored, "file {index}");
    }
}

#[test]
fn a_disk_error_is_not_remembered() {
    let made = synthetic_image(14, 40);
    let (engine, image) = made.counted(1, 1 << 20);
    for index in 0..40 {
        let reader = engine.open_file(InodeId(FILE + index)).unwrap();
        let mut buf = vec![0; reader.len() as usize];
        image.fails_once.store(true, Ordering::Relaxed);
        if let Err(error) = reader.read_at(0, &mut buf) {
            assert_eq!(error.kind(), ErrorKind::Io);
        }
        image.fails_once.store(false, Ordering::Relaxed);
        assert_eq!(reader.read_at(0, &mut buf).unwrap(), buf.len());
        assert!(buf == made.contents[index as usize], "file {index}");
    }
}

#[test]
fn a_block_is_decoded_once_however_many_ask() {
    let made = synthetic_image(15, 30);
    let (engine, image) = made.counted(1, 64 << 20);
    let is_block = |extent: &packfs_format::Extent| matches!(extent.from, ExtentFrom::Block { .. });
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for (index, extents) in made.volume.files.iter().enumerate() {
                    if extents.iter().all(is_block) {
                        let reader = engine.open_file(InodeId(FILE + index as u64)).unwrap();
                        reader.read_at(0, &mut vec![0; reader.len() as usize]).unwrap();
                    }
                }
            });
        }
    });
    assert!(image.read_len.load(Ordering::Relaxed) <= made.image.len() as u64);
}

const BLOCK_LEN: usize = 256 << 10;

/// Returns one file in LZ4 blocks.
fn one_large_file(block_count: usize) -> SyntheticImage {
    let mut random = Random::new(3);
    let mut encoder = encoder(&CodecSettings::Lz4(Lz4Settings { acceleration: 1 })).unwrap();
    let (mut image, mut extents, mut contents) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..block_count {
        let raw = random.text(BLOCK_LEN);
        let mut stored = vec![0; 2 * BLOCK_LEN];
        let stored_len = encoder.compress(&raw, &mut stored).unwrap().unwrap();
        let block = BlockRef {
            decoded_len: BLOCK_LEN as u32,
            algorithm: Some(Algorithm::Lz4),
            ..BlockRef::stored(image.len() as u64, stored_len as u32)
        };
        let from = ExtentFrom::Block { block, start: 0 };
        extents.push(Extent { offset: (index * BLOCK_LEN) as u64, len: BLOCK_LEN as u64, from });
        image.extend_from_slice(&stored[..stored_len]);
        contents.extend_from_slice(&raw);
    }
    let volume = SyntheticVolume { dirs: vec![Vec::new()], files: vec![extents] };
    SyntheticImage { image, volume, contents: vec![contents] }
}

#[test]
fn random_reads_decode_a_prefix_until_the_block_is_read_again() {
    let made = one_large_file(10);
    let engine = made.engine(2, 64 << 20);
    let reader = engine.open_file(InodeId(FILE)).unwrap();
    let cost_of = |block: usize, at: usize| {
        let before = engine.counters();
        let (mut buf, offset) = ([0; 4096], block * BLOCK_LEN + at);
        assert_eq!(reader.read_at(offset as u64, &mut buf).unwrap(), buf.len());
        assert!(buf == made.contents[0][offset..][..buf.len()], "block {block}, byte {at}");
        let after = engine.counters();
        (after.decodes - before.decodes, after.decoded_bytes - before.decoded_bytes)
    };
    assert_eq!(cost_of(5, 8192), (1, 12288), "the beginning");
    assert_eq!(cost_of(2, 100_000), (1, 106_496), "and another");
    assert_eq!(cost_of(5, 5000), (0, 0), "what was decoded is there");
    assert_eq!(cost_of(8, 250_000), (1, BLOCK_LEN as u64), "nearly all is all");
    assert_eq!(cost_of(5, 100_000), (1, BLOCK_LEN as u64), "all, when more is wanted");
    assert_eq!(cost_of(2, 90_000), (0, 0));
    assert_eq!(cost_of(5, 200_000), (0, 0));
    // Across the border of two blocks.
    assert_eq!(cost_of(0, BLOCK_LEN - 2000), (2, BLOCK_LEN as u64 + 4096));
}

#[test]
fn blocks_read_sequentially_by_a_caching_caller_are_evicted_first() {
    assert_eq!(decodes_after_reading_in_order(true), (0, 1));
    assert_eq!(decodes_after_reading_in_order(false), (0, 0));
}

/// Returns the number of decodings of a file's last block and of one in the middle, after it was
/// read in order.
fn decodes_after_reading_in_order(is_kept_by_readers: bool) -> (u64, u64) {
    let made = one_large_file(40);
    let engine = made.engine_with(ReadOptions {
        jobs: 1,
        cache_bytes: 64 << 20,
        is_kept_by_readers,
        ..ReadOptions::default()
    });
    let mut buf = vec![0; 64 << 10];
    let mut reader = engine.open_file(InodeId(FILE)).unwrap();
    while reader.read(&mut buf).unwrap() > 0 {}
    assert_eq!(engine.counters().decodes, 40, "each once");
    let again = engine.open_file(InodeId(FILE)).unwrap();
    let decodes_of = |block: usize| {
        let before = engine.counters().decodes;
        again.read_at((block * BLOCK_LEN) as u64, &mut [0; 10]).unwrap();
        engine.counters().decodes - before
    };
    (decodes_of(39), decodes_of(20))
}

#[test]
fn page_neighbours_are_whole_pages_and_their_block_is_evictable() {
    let made = one_large_file(40);
    let engine = made.engine_with(ReadOptions { jobs: 1, cache_bytes: 64 << 20, ..ReadOptions::default() });
    let reader = engine.open_file(InodeId(FILE)).unwrap();
    let mut jumps = 0;
    for index in 1..20 {
        reader.read_at((index * 7 % 20 * 2 * BLOCK_LEN) as u64, &mut [0; 10]).unwrap();
        jumps += u32::from(!reader.is_random());
    }
    assert_eq!(jumps, 7, "that much is no habit yet");
    let offset = 4 * BLOCK_LEN + 100_000;
    let before = engine.counters().decodes;
    let beside = reader.page_neighbours(offset as u64).unwrap().unwrap();
    assert_eq!((beside.offset, beside.bytes.len()), (4 * BLOCK_LEN as u64, BLOCK_LEN));
    assert!(beside.bytes[..] == made.contents[0][4 * BLOCK_LEN..][..BLOCK_LEN]);
    assert_eq!(engine.counters().decodes, before + 1, "the beginning was not enough");
    reader.read_at(offset as u64, &mut [0; 10]).unwrap();
    assert_eq!(engine.counters().decodes, before + 1, "it is dropped when others have come");
    for block in 20..40 {
        reader.page_neighbours((block * BLOCK_LEN) as u64 + 5).unwrap().unwrap();
    }
    let before = engine.counters().decodes;
    reader.read_at((21 * BLOCK_LEN) as u64, &mut [0; 10]).unwrap();
    assert_eq!(engine.counters().decodes, before + 1, "there was room for it, but it is with the reader");
    assert!(reader.page_neighbours(reader.len()).unwrap().is_none(), "nothing is behind the end");
    assert!(reader.page_neighbours(u64::MAX).unwrap().is_none());
}

#[test]
fn a_block_read_at_random_can_be_made_evictable() {
    let made = one_large_file(40);
    let engine = made.engine_with(ReadOptions { jobs: 1, cache_bytes: 64 << 20, ..ReadOptions::default() });
    let reader = engine.open_file(InodeId(FILE)).unwrap();
    for block in 0..40 {
        let offset = (block * 7 % 40 * BLOCK_LEN) as u64;
        reader.read_at(offset, &mut vec![0; BLOCK_LEN]).unwrap();
        reader.make_evictable(offset + 10);
    }
    assert_eq!(engine.counters().decodes, 40);
    reader.read_at((7 * BLOCK_LEN) as u64, &mut vec![0; BLOCK_LEN]).unwrap();
    assert_eq!(engine.counters().decodes, 41);
    reader.make_evictable(u64::MAX);
}

#[test]
fn a_beginning_that_is_prepared_is_decoded_once() {
    let made = one_large_file(4);
    let engine = made.engine(2, 64 << 20);
    let reader = engine.open_file(InodeId(FILE)).unwrap();
    reader.prepare();
    let prepared = engine.counters();
    assert_eq!((prepared.decodes, prepared.readahead_blocks, prepared.cache_misses), (1, 1, 0));
    reader.prepare();
    let mut buf = vec![0; 4096];
    reader.read_at(0, &mut buf).unwrap();
    assert!(buf == made.contents[0][..4096]);
    let read = engine.counters();
    assert_eq!((read.decodes, read.readahead_used, read.cache_hits), (1, 1, 1));
    let alone = made.engine(1, 64 << 20);
    alone.open_file(InodeId(FILE)).unwrap().prepare();
    assert_eq!(alone.counters().decodes, 0, "one job means that nothing is decoded ahead");
}

//! Random access.

use crate::made_up::{FILE, made};
use packfs_core::{ContentId, Contents, ErrorKind, ExtentFrom, InodeId};
use packfs_testkit::Random;
use std::io::{Read, Seek, SeekFrom};
use std::sync::atomic::Ordering;

#[test]
fn random_reads_agree_from_many_threads() {
    let made = made(5, 40);
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
    let made = made(6, 40);
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
    let made = made(7, 60);
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
    let made = made(14, 40);
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
    let made = made(15, 30);
    let (engine, image) = made.counted(1, 64 << 20);
    let is_block = |extent: &packfs_core::Extent| matches!(extent.from, ExtentFrom::Block { .. });
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

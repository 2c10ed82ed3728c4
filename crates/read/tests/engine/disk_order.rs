//! Reads in disk order.

use crate::made_up::{FILE, SyntheticImage, SyntheticVolume, synthetic_image};
use packfs_core::{Error, ErrorKind, FileType, Progress, Result, Silent};
use packfs_format::{DirEntry, Extent, ExtentFrom, InodeId};
use packfs_read::PieceSink;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A file's bytes, their number, and the announced number.
type Gathered = (Vec<u8>, u64, Option<u64>);

/// Gathers pieces of all workers.
struct Gather<'a>(&'a Mutex<Vec<Gathered>>);

impl PieceSink for Gather<'_> {
    fn expect(&mut self, file_index: usize, data_len: u64) {
        let expected = &mut self.0.lock().unwrap()[file_index].2;
        assert_eq!(*expected, None, "said once");
        *expected = Some(data_len);
    }

    fn piece(&mut self, file_index: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        let (content, received, expected) = &mut self.0.lock().unwrap()[file_index];
        assert!(expected.is_some(), "announced before it comes");
        content[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        *received += bytes.len() as u64;
        Ok(())
    }
}

#[test]
fn disk_order_delivers_every_byte_once_with_1_2_and_16_workers() {
    for (seed, jobs) in [(1, 1), (1, 2), (1, 16), (2, 2), (3, 16)] {
        let made = synthetic_image(seed, 60);
        let blank = made.contents.iter().map(|bytes| (vec![0; bytes.len()], 0, None)).collect();
        let gathered = Mutex::new(blank);
        made.engine(jobs, 0).in_disk_order(&made.wanted(), &Silent, &|| Ok(Gather(&gathered))).unwrap();
        for (index, (content, received, expected)) in gathered.into_inner().unwrap().into_iter().enumerate() {
            assert!(content == made.contents[index], "file {index}, {jobs} workers");
            assert_eq!(expected.unwrap_or(0), received, "file {index}");
        }
    }
}

#[test]
fn disk_order_reads_no_byte_twice() {
    let made = synthetic_image(11, 60);
    for jobs in [1, 4] {
        let (engine, image) = made.counted(jobs, 0);
        // Uncompressed parts overlap with all other data here.
        let is_block = |extent: &Extent| matches!(extent.from, ExtentFrom::Block { .. } | ExtentFrom::Hole);
        let files = made.wanted().into_iter().zip(&made.volume.files);
        let files: Vec<_> =
            files.filter(|(_, extents)| extents.iter().all(is_block)).map(|(wanted, _)| wanted).collect();
        assert!(files.len() > 10);
        engine.in_disk_order(&files, &Silent, &|| Ok(Ignores)).unwrap();
        let (read_len, len) = (image.read_len.load(Ordering::Relaxed), made.image.len() as u64);
        assert!(read_len <= len, "{read_len} of {len} bytes with {jobs} workers");
    }
}

/// Takes everything and keeps nothing.
struct Ignores;

impl PieceSink for Ignores {
    fn piece(&mut self, _: usize, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

#[test]
fn files_of_more_extents_than_are_held_at_a_time_come_whole() {
    const EXTENT_COUNT: u64 = 600_000;
    let image: Vec<u8> = (0..=255).collect();
    let every_other = |index: u64| Extent {
        offset: index,
        len: 1,
        from: if index.is_multiple_of(3) { ExtentFrom::Hole } else { ExtentFrom::Stored(index * 7 % 256) },
    };
    let byte = |index: u64| if index.is_multiple_of(3) { 0 } else { (index * 7 % 256) as u8 };
    let long: Vec<Extent> = (0..EXTENT_COUNT).map(every_other).collect();
    let contents = vec![
        vec![1, 2],
        (0..EXTENT_COUNT).map(byte).collect::<Vec<u8>>(),
        (0..256).map(|index| index as u8).collect(),
        vec![3],
    ];
    let stored = |at, len| vec![Extent { offset: 0, len, from: ExtentFrom::Stored(at) }];
    let files = vec![stored(1, 2), long, stored(0, 256), stored(3, 1)];
    let entry = DirEntry { name: b"x".to_vec(), id: InodeId(FILE), file_type: FileType::File };
    let made = SyntheticImage { image, volume: SyntheticVolume { dirs: vec![vec![entry]], files }, contents };
    let blank = made.contents.iter().map(|bytes| (vec![0; bytes.len()], 0, None)).collect();
    let gathered = Mutex::new(blank);
    made.engine(2, 0).in_disk_order(&made.wanted(), &Silent, &|| Ok(Gather(&gathered))).unwrap();
    for (index, (content, received, expected)) in gathered.into_inner().unwrap().into_iter().enumerate() {
        assert!(content == made.contents[index], "file {index}");
        assert_eq!(expected, Some(received), "file {index}");
    }
}

#[test]
fn an_error_of_the_sink_ends_the_work() {
    struct Refuses;
    impl PieceSink for Refuses {
        fn piece(&mut self, _: usize, _: u64, _: &[u8]) -> Result<()> {
            Err(Error::failed("the sink is full"))
        }
    }
    let made = synthetic_image(9, 40);
    for jobs in [1, 8] {
        let error = made.engine(jobs, 0).in_disk_order(&made.wanted(), &Silent, &|| Ok(Refuses)).unwrap_err();
        assert_eq!(error.to_string(), "the sink is full");
    }
}

#[test]
fn a_worker_that_cannot_be_made_ends_the_work() {
    let made = synthetic_image(9, 40);
    for fails_at in [0, 1, 3] {
        let count = AtomicUsize::new(0);
        let new_worker = || match count.fetch_add(1, Ordering::Relaxed) {
            made if made == fails_at => Err(Error::failed("too many open files")),
            _ => Ok(Ignores),
        };
        let error = made.engine(4, 0).in_disk_order(&made.wanted(), &Silent, &new_worker).unwrap_err();
        assert_eq!(error.to_string(), "too many open files");
    }
}

#[test]
fn a_panic_of_one_worker_stops_them_all() {
    struct Panics;
    impl PieceSink for Panics {
        fn piece(&mut self, _: usize, _: u64, _: &[u8]) -> Result<()> {
            std::panic::resume_unwind(Box::new("of the sink"))
        }
    }
    let made = synthetic_image(9, 40);
    for jobs in [1, 4] {
        let engine = made.engine(jobs, 0);
        let work = || engine.in_disk_order(&made.wanted(), &Silent, &|| Ok(Panics));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
    }
}

#[test]
fn stops_when_cancelled() {
    struct Stop;
    impl Progress for Stop {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let made = synthetic_image(10, 40);
    let engine = made.engine(4, 0);
    let error = engine.in_disk_order(&made.wanted(), &Stop, &|| Ok(Ignores)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

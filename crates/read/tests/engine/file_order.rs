//! Files in a given order.

use crate::made_up::{FILE, synthetic_image};
use packfs_core::{Error, ErrorKind, Fetched, Image, Progress, Result, Silent};
use packfs_format::{Extent, ExtentFrom, InodeId};
use packfs_read::{Piece, ReadEngine, ReadOptions, Wanted};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

#[test]
fn file_order_delivers_files_one_after_the_other() {
    for (jobs, cache_bytes) in [(1, 0), (2, 1 << 20), (16, 64 << 20)] {
        let made = synthetic_image(4, 60);
        let mut got: Vec<Vec<u8>> = Vec::new();
        let mut open = false;
        let deliver = &mut |index: usize, piece: Piece<'_>| {
            if !open {
                assert_eq!(index, got.len());
                got.push(Vec::new());
                open = true;
            }
            let file = got.last_mut().unwrap();
            match piece {
                Piece::Data { offset, bytes } => {
                    assert_eq!(offset, file.len() as u64);
                    file.extend_from_slice(bytes);
                }
                Piece::Hole { offset, len } => {
                    assert_eq!(offset, file.len() as u64);
                    file.resize(file.len() + len as usize, 0);
                }
                Piece::End => open = false,
            }
            Ok(())
        };
        made.engine(jobs, cache_bytes).in_file_order(&made.wanted(), &Silent, deliver).unwrap();
        assert!(got == made.contents, "{jobs} workers");
    }
}

/// Image far away, which is read only where that was announced.
#[derive(Default)]
struct Far {
    bytes: Vec<u8>,
    announced: Mutex<Vec<Range<u64>>>,
    came: Condvar,
}

impl Image for Far {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let is_missing =
            |announced: &mut Vec<Range<u64>>| !announced.iter().any(|range| range.contains(&offset));
        let announced = self.announced.lock().unwrap();
        let waited = self.came.wait_timeout_while(announced, Duration::from_secs(20), is_missing).unwrap();
        assert!(!waited.1.timed_out(), "byte {offset} was not announced");
        let rest = &self.bytes[offset as usize..];
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn will_read(&self, ranges: &[Range<u64>]) {
        self.announced.lock().unwrap().extend_from_slice(ranges);
        self.came.notify_all();
    }

    fn fetched(&self) -> Option<Fetched> {
        Some(Fetched::default())
    }

    fn name(&self) -> String {
        "far image".into()
    }
}

#[test]
fn an_image_far_away_is_told_what_is_read_next() {
    for jobs in [1, 3] {
        let made = synthetic_image(4, 60);
        let image = Arc::new(Far { bytes: made.image.clone(), ..Far::default() });
        let options = ReadOptions { jobs, cache_bytes: 1 << 20, ..ReadOptions::default() };
        let engine = ReadEngine::new(image, Arc::new(made.volume.volume()), options);
        let mut len = 0;
        let deliver = &mut |_: usize, piece: Piece<'_>| {
            if let Piece::Data { bytes, .. } = piece {
                len += bytes.len();
            }
            // The delivery ends before all is announced, and does not wait for that.
            if len < 100_000 { Ok(()) } else { Err(Error::failed("enough")) }
        };
        let ended = engine.in_file_order(&made.wanted(), &Silent, deliver);
        assert!(ended.is_ok() || len >= 100_000, "{ended:?}");
    }
}

#[test]
fn decodes_shared_blocks_once_if_they_fit_the_cache() {
    let mut made = synthetic_image(12, 30);
    // Every file consists of parts of shared blocks.
    let is_part = |extent: &Extent| matches!(extent.from, ExtentFrom::Block { .. });
    made.volume.files.retain(|extents| !extents.is_empty() && extents.iter().all(is_part));
    let mut wanted = Vec::new();
    for (index, extents) in made.volume.files.iter().enumerate() {
        let len = extents.iter().map(|extent| extent.len).sum();
        wanted.extend([Wanted { id: InodeId(FILE + index as u64), len }; 20]);
    }
    for jobs in [1, 4] {
        let (engine, image) = made.counted(jobs, 64 << 20);
        engine.in_file_order(&wanted, &Silent, &mut |_, _| Ok(())).unwrap();
        let (read_len, len) = (image.read_len.load(Ordering::Relaxed), made.image.len() as u64);
        assert!(read_len <= len, "{read_len} of {len} bytes with {jobs} workers");
    }
}

#[test]
fn everything_before_a_file_that_cannot_be_found_is_delivered() {
    let made = synthetic_image(13, 20);
    let mut wanted = made.wanted();
    wanted[15].id = InodeId(FILE + 1_000_000);
    wanted[15].len = 1;
    for jobs in [1, 2, 16] {
        let mut ends = Vec::new();
        let error = made.engine(jobs, 1 << 20).in_file_order(&wanted, &Silent, &mut |index, piece| {
            if matches!(piece, Piece::End) {
                ends.push(index);
            }
            Ok(())
        });
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Corrupt);
        assert!(ends.iter().copied().eq(0..15), "{ends:?}");
    }
}

#[test]
fn an_error_or_a_panic_of_the_delivery_ends_the_work() {
    let made = synthetic_image(9, 40);
    for jobs in [1, 8] {
        let engine = made.engine(jobs, 0);
        let error =
            engine.in_file_order(&made.wanted(), &Silent, &mut |_, _| Err(Error::failed("pipe closed")));
        assert_eq!(error.unwrap_err().to_string(), "pipe closed");
        let work = || {
            engine.in_file_order(&made.wanted(), &Silent, &mut |index, _| match index {
                5.. => std::panic::resume_unwind(Box::new("of the delivery")),
                _ => Ok(()),
            })
        };
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
    let error = made.engine(4, 0).in_file_order(&made.wanted(), &Stop, &mut |_, _| Ok(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

//! Unreadable files, and cancelled work.

use crate::check::{check, place};
use crate::fake::{CLUSTER_LEN, Fake, Files, cut, try_pack};
use packfs_codec::{CodecSettings, Lz4Settings};
use packfs_core::{ErrorKind, Progress, Silent};
use packfs_format::{FilePlace, Tail};
use packfs_pack::PackOptions;
use packfs_testkit::Random;
use std::sync::atomic::{AtomicUsize, Ordering};

const LZ4: CodecSettings = CodecSettings::Lz4(Lz4Settings { acceleration: 1 });

fn files_with_a_broken_one() -> Files {
    let mut random = Random::new(14);
    let all: Vec<Vec<u8>> = (1..40).map(|i| random.text(i * 2111)).collect();
    Files { broken: vec![3, 30], ..Files::new(all) }
}

#[test]
fn keep_going_stores_unreadable_files_empty() {
    let files = files_with_a_broken_one();
    for job in [|_| (Tail::Own, 0), |_| (Tail::Shared, 0), |_| (Tail::SharedWhole, 0), |_| (Tail::Inline, 1)]
        as [fn(u64) -> _; 4]
    {
        let format = Fake::new(cut(LZ4, CLUSTER_LEN), job);
        let options = PackOptions { jobs: 2, keep_going: true, ..PackOptions::default() };
        let packed = try_pack(&format, &files, &options, &Silent).unwrap();
        check(&packed, &files);
        assert_eq!(packed.placed.failed.len(), 2);
        assert_eq!(packed.report.skipped.len(), 2);
        assert_eq!(place(&packed, 30), FilePlace::default());
        let stopped = try_pack(&format, &files, &PackOptions::default(), &Silent);
        assert!(stopped.err().unwrap().to_string().contains("the disk is broken"));
    }
}

struct StopsAfter(AtomicUsize);

impl Progress for StopsAfter {
    fn cancelled(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

#[test]
fn stops_on_request_and_leaves_nothing() {
    let mut random = Random::new(15);
    let files = Files::new((1..40).map(|i| random.text(i * 21_111)).collect());
    let format = Fake::new(cut(LZ4, CLUSTER_LEN), |_| (Tail::Shared, 0));
    for left in [0, 1, 2, 5] {
        let options = PackOptions { jobs: 2, ..PackOptions::default() };
        let stopped = try_pack(&format, &files, &options, &StopsAfter(AtomicUsize::new(left)));
        assert!(stopped.is_err_and(|error| error.kind() == ErrorKind::Cancelled), "{left}");
    }
}

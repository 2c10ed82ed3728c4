//! Costs of reading: reads of the image, decodes, and bytes, for each way that users read.

use packfs::{Counters, ImagePath, InodeKind, OpenOptions, Opened};
use packfs_testkit::Random;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

const FORMATS: [&str; 2] = ["squashfs", "erofs"];
const BIG_LEN: usize = 2_000_000;
const SMALL_COUNT: usize = 300;

fn image(format: &str, folder: &Path, jobs: usize) -> Opened {
    let source = folder.join("source");
    let path = folder.join(format);
    if !source.exists() {
        let mut random = Random::new(40);
        std::fs::create_dir_all(source.join("deep/er")).unwrap();
        for index in 0..SMALL_COUNT {
            std::fs::write(source.join(format!("deep/er/small{index}")), random.text(700 + index)).unwrap();
        }
        std::fs::write(source.join("big"), random.text(BIG_LEN)).unwrap();
    }
    if !path.exists() {
        let pack = packfs::pack(&source, &path).format(format).codec("zstd:3").sync(false);
        let pack = if format == "squashfs" { pack.block_size(64 << 10) } else { pack };
        pack.run().unwrap();
    }
    OpenOptions::new().jobs(jobs).open(&path).unwrap()
}

/// Returns the cost of `work` on an image that was just opened.
fn cost(opened: &Opened, work: impl FnOnce(&Opened)) -> Counters {
    let before = opened.counters();
    work(opened);
    let mut cost = opened.counters();
    cost.metadata_reads -= before.metadata_reads;
    cost.metadata_bytes -= before.metadata_bytes;
    assert_eq!((before.decodes, before.data_reads), (0, 0), "opening reads no data");
    cost
}

#[test]
fn opening_reads_a_few_kibibytes() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let counters = image(format, folder.path(), 1).counters();
        assert!(counters.metadata_reads <= 12, "{format}: {counters:?}");
        assert!(counters.metadata_bytes <= 64 << 10, "{format}: {counters:?}");
    }
}

#[test]
fn stat_reads_metadata_on_the_way_and_no_data() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let cost = cost(&image(format, folder.path(), 1), |opened| {
            let id = opened.find(ImagePath::parse(b"deep/er/small7").unwrap()).unwrap();
            assert_eq!(opened.volume().inode(id).unwrap().kind, InodeKind::File { len: 707 });
        });
        assert_eq!((cost.decodes, cost.data_reads), (0, 0), "{format}: {cost:?}");
        assert!(cost.metadata_reads <= 10, "{format}: {cost:?}");
        assert!(cost.metadata_bytes <= 96 << 10, "{format}: {cost:?}");
    }
}

#[test]
fn listing_everything_reads_each_metadata_block_once_and_no_data() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let opened = image(format, folder.path(), 1);
        let list = |opened: &Opened| assert_eq!(opened.walk().map(Result::unwrap).count(), 4 + SMALL_COUNT);
        let first = cost(&opened, list);
        assert_eq!((first.decodes, first.data_reads), (0, 0), "{format}: {first:?}");
        assert!(first.metadata_reads <= 24, "{format}: {first:?}");
        list(&opened);
        let total = opened.counters();
        let fresh = image(format, folder.path(), 1).counters();
        assert_eq!(total.metadata_reads, first.metadata_reads + fresh.metadata_reads, "{format}: kept");
    }
}

#[test]
fn cat_of_a_small_file_reads_and_decodes_at_most_one_block() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        for jobs in [1, 2] {
            let cost = cost(&image(format, folder.path(), jobs), |opened| {
                assert_eq!(opened.read("deep/er/small200").unwrap().len(), 900);
            });
            assert!(cost.decodes <= 1 && cost.data_reads == 1, "{format}: {cost:?}");
            // One cluster of EROFS may decode to several times what it is stored in.
            assert!(cost.data_bytes <= 64 << 10 && cost.decoded_bytes <= 512 << 10, "{format}: {cost:?}");
            assert_eq!(cost.readahead_blocks, 0, "{format}: {cost:?}");
        }
    }
}

#[test]
fn sequential_reads_decode_each_block_once_on_any_thread() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        for jobs in [1, 2, 8] {
            let mut block_count = 0;
            let cost = cost(&image(format, folder.path(), jobs), |opened| {
                let mut file = opened.open_file("big").unwrap();
                opened
                    .volume()
                    .extents(file.id(), 0..file.len(), &mut |extent| {
                        block_count += u64::from(matches!(extent.from, packfs::ExtentFrom::Block { .. }));
                        std::ops::ControlFlow::Continue(())
                    })
                    .unwrap();
                let mut buf = vec![0; 10_000];
                let mut read_len = 0;
                loop {
                    match file.read(&mut buf).unwrap() {
                        0 => break,
                        len => read_len += len,
                    }
                }
                assert_eq!(read_len, BIG_LEN);
            });
            assert_eq!(cost.decodes, block_count, "{format}, {jobs}: {cost:?}");
            assert!(cost.data_bytes < BIG_LEN as u64, "{format}, {jobs}: {cost:?}");
            assert_eq!(cost.readahead_wasted, 0, "{format}, {jobs}: {cost:?}");
            assert!(jobs > 1 || cost.readahead_blocks == 0, "{format}: {cost:?}");
        }
    }
}

#[test]
fn sequential_reads_decode_blocks_ahead() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let opened = image(format, folder.path(), 2);
        let mut file = opened.open_file("big").unwrap();
        let mut half = vec![0; BIG_LEN / 2];
        half.chunks_mut(20_000).for_each(|part| file.read_exact(part).unwrap());
        let deadline = Instant::now() + Duration::from_secs(60);
        while opened.counters().readahead_blocks == 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        file.read_to_end(&mut half).unwrap();
        assert_eq!(half.len(), BIG_LEN);
        let cost = opened.counters();
        assert!(cost.readahead_blocks > 0, "{format}: {cost:?}");
    }
}

#[test]
fn one_large_read_reads_neighbouring_blocks_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let cost = cost(&image(format, folder.path(), 1), |opened| {
            let file = opened.open_file("big").unwrap();
            assert_eq!(file.read_at(0, &mut vec![0; 1 << 20]).unwrap(), 1 << 20);
        });
        assert!(cost.data_reads <= 2 && cost.decodes > 4, "{format}: {cost:?}");
    }
}

#[test]
fn random_reads_decode_no_block_twice_and_nothing_ahead() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let cost = cost(&image(format, folder.path(), 2), |opened| {
            let file = opened.open_file("big").unwrap();
            let mut random = Random::new(7);
            for _ in 0..500 {
                let offset = 200_000 * (1 + random.below(8)) + random.below(50) * 1000;
                file.read_at(offset, &mut [0; 4096]).unwrap();
            }
        });
        let blocks = if format == "squashfs" { BIG_LEN as u64 / (64 << 10) + 1 } else { u64::MAX };
        assert!(
            cost.decodes <= blocks && cost.decodes <= cost.cache_misses + cost.readahead_blocks,
            "{cost:?}"
        );
        assert!(cost.cache_hits > 300, "{format}: {cost:?}");
        assert!(cost.decoded_bytes <= BIG_LEN as u64 + (64 << 10), "{format}: {cost:?}");
    }
}

//! Costs of a mount: requests, unrequested stores into the page cache, and decodes.

use packfs::mount::{Channel, FuseCounters, FuseMount, FuseOptions};
use packfs::{ExtentFrom, InodeId, OpenOptions, Opened};
use packfs_testkit::{Random, UringSwitch, is_root, skip};
use rustix::fs::{Advice, fadvise};
use std::collections::BTreeSet;
use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const FORMATS: [&str; 2] = ["squashfs", "erofs"];
const BIG_LEN: usize = 4_000_000;
const PAGE_LEN: u64 = 4096;
const SMALL_COUNT: usize = 60;
/// So many jumps are not taken for a habit.
const JUMPS_FREE: u64 = 7;

/// Channels of the kernel to the server that this machine has.
struct Routes {
    channels: Vec<Channel>,
    _switch: Option<UringSwitch>,
}

impl Routes {
    fn new() -> Self {
        let switch = UringSwitch::turn(true);
        let uring = switch.as_ref().map(|_| Channel::Uring);
        Routes { channels: [Channel::Classic].into_iter().chain(uring).collect(), _switch: switch }
    }

    /// Returns each format with each channel.
    fn iter(&self) -> impl Iterator<Item = (&'static str, Channel)> {
        FORMATS.into_iter().flat_map(|format| self.channels.iter().map(move |&channel| (format, channel)))
    }
}

/// A mounted image of a large file and many small ones.
struct Mounted {
    mount: FuseMount,
    opened: Opened,
    source: PathBuf,
    _folder: tempfile::TempDir,
}

impl Mounted {
    /// None where this machine allows no mounts. `damage` gets the image before it is mounted.
    fn new(format: &str, channel: Channel, damage: impl FnOnce(&Path)) -> Option<Mounted> {
        if !is_root() || File::options().read(true).write(true).open("/dev/fuse").is_err() {
            skip("mounting through FUSE needs root and /dev/fuse");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let (source, image, at) =
            (folder.path().join("source"), folder.path().join("image"), folder.path().join("at"));
        std::fs::create_dir(&source).unwrap();
        std::fs::create_dir(&at).unwrap();
        let mut random = Random::new(41);
        std::fs::write(source.join("big"), random.text(BIG_LEN)).unwrap();
        for index in 0..SMALL_COUNT {
            std::fs::write(source.join(format!("small{index}")), random.text(20_000 + index)).unwrap();
        }
        let pack = packfs::pack(&source, &image).format(format).codec("zstd:3").sync(false);
        // Clusters are so long when they are compressed, blocks before.
        let pack = pack.block_size(if format == "squashfs" { 64 << 10 } else { 16 << 10 });
        pack.run().unwrap();
        damage(&image);
        let opened = OpenOptions::new().jobs(2).kept_by_readers().open(&image).unwrap();
        let options = FuseOptions { channel, ..FuseOptions::new(opened.volume().root(), &image) };
        let mount = FuseMount::new(Arc::clone(opened.engine()), &at, &options).unwrap();
        assert_eq!(mount.channel(), channel);
        Some(Mounted { mount, opened, source, _folder: folder })
    }

    /// The large file, of which nothing is read ahead.
    fn big(&self) -> File {
        let big = File::open(self.mount.at().join("big")).unwrap();
        fadvise(&big, 0, None, Advice::Random).unwrap();
        big
    }

    fn content(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.source.join(name)).unwrap()
    }

    /// Reads a page where nothing of its block was read before, and waits until the rest of that
    /// was dealt with.
    fn jump(&self, big: &File, content: &[u8], offset: u64, dealt_with: u64) -> FuseCounters {
        assert!(page(big, offset).unwrap() == page_of(content, offset), "{offset}");
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let counters = self.mount.counters();
            if counters.stores + counters.stores_left_out >= dealt_with {
                return counters;
            }
            assert!(Instant::now() < end, "{counters:?}, {dealt_with} expected");
            std::thread::yield_now();
        }
    }
}

fn page(file: &File, offset: u64) -> std::io::Result<Vec<u8>> {
    let mut page = vec![0; PAGE_LEN as usize];
    let len = file.read_at(&mut page, offset)?;
    page.truncate(len);
    Ok(page)
}

fn page_of(content: &[u8], offset: u64) -> &[u8] {
    let end = (offset + PAGE_LEN).min(content.len() as u64);
    &content[offset as usize..end as usize]
}

/// Returns the range of the large file in the block around a byte, and its place in the image.
fn block_around(opened: &Opened, offset: u64) -> (Range<u64>, Range<u64>) {
    let id: InodeId = opened.find(b"big").unwrap();
    let mut found = None;
    let find = &mut |extent: packfs::Extent| {
        if let ExtentFrom::Block { block, start } = extent.from {
            let first = offset - u64::from(start);
            let end = (first + u64::from(block.decoded_len)).min(BIG_LEN as u64);
            found = Some((first..end, block.offset..block.offset + u64::from(block.stored_len)));
        }
        ControlFlow::Break(())
    };
    opened.volume().extents(id, offset..offset + 1, find).unwrap();
    found.unwrap()
}

/// Pages far from each other, in an order that never goes on.
fn jumps() -> impl Iterator<Item = u64> + Clone {
    (1..=20).map(|index| (index * 7 % 20 + 1) * 45 * PAGE_LEN)
}

#[test]
fn random_reads_get_whole_blocks() {
    let routes = Routes::new();
    for (format, channel) in routes.iter() {
        let Some(mounted) = Mounted::new(format, channel, |_| {}) else { return };
        let (big, content) = (mounted.big(), mounted.content("big"));
        for (index, offset) in jumps().enumerate() {
            let dealt_with = (index as u64 + 1).saturating_sub(JUMPS_FREE);
            let counters = mounted.jump(&big, &content, offset, dealt_with);
            assert_eq!((counters.stores, counters.stores_left_out), (dealt_with, 0), "{format} {channel:?}");
        }
        let (asked, decoded) = (mounted.mount.counters().requests, mounted.opened.counters().decodes);
        // Pages may lie in two clusters.
        let touched = jumps().flat_map(|offset| [offset, offset + PAGE_LEN - 1]);
        let blocks: BTreeSet<u64> = touched.map(|at| block_around(&mounted.opened, at).1.start).collect();
        assert!(decoded <= blocks.len() as u64, "{format} {channel:?}: {decoded} of {}", blocks.len());
        for offset in jumps().skip(JUMPS_FREE as usize) {
            let (block, _) = block_around(&mounted.opened, offset);
            let first = block.start.next_multiple_of(PAGE_LEN);
            let end = if block.end == BIG_LEN as u64 { block.end } else { block.end / PAGE_LEN * PAGE_LEN };
            assert!(end - first >= 4 * PAGE_LEN, "{format} {channel:?}: {block:?}");
            for offset in (first..end).step_by(PAGE_LEN as usize) {
                assert!(
                    page(&big, offset).unwrap() == page_of(&content, offset),
                    "{format} {channel:?}: {offset}"
                );
            }
        }
        assert_eq!(
            mounted.mount.counters().requests,
            asked,
            "{format} {channel:?}: all of it was in the page cache"
        );
        assert!(std::fs::read(mounted.mount.at().join("big")).unwrap() == content, "{format} {channel:?}");
    }
}

#[test]
fn a_damaged_block_is_not_given_and_those_around_it_are_right() {
    let routes = Routes::new();
    for (format, channel) in routes.iter() {
        let mut damaged = 0..0;
        let damage = |image: &Path| {
            let opened = packfs::open(image).unwrap();
            let (block, stored) = block_around(&opened, BIG_LEN as u64 / 2);
            let garbage = vec![0xff; (stored.end - stored.start) as usize];
            File::options().write(true).open(image).unwrap().write_all_at(&garbage, stored.start).unwrap();
            damaged = block;
        };
        let Some(mounted) = Mounted::new(format, channel, damage) else { return };
        let (big, content) = (mounted.big(), mounted.content("big"));
        let mut pages: Vec<u64> = (0..BIG_LEN as u64).step_by(PAGE_LEN as usize).collect();
        let mut random = Random::new(7);
        (1..pages.len()).for_each(|index| pages.swap(index, random.below(index as u64 + 1) as usize));
        for _ in 0..2 {
            for &offset in &pages {
                let is_damaged = offset < damaged.end && offset + PAGE_LEN > damaged.start;
                match page(&big, offset) {
                    Ok(found) => {
                        assert!(!is_damaged, "{format} {channel:?}: {offset} of {damaged:?}");
                        assert!(found == page_of(&content, offset), "{format} {channel:?}: {offset}");
                    }
                    Err(error) => {
                        assert!(is_damaged, "{format} {channel:?}: {offset}, {damaged:?}: {error}");
                        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
                    }
                }
            }
        }
        assert!(mounted.mount.counters().stores > 0, "{format} {channel:?}");
    }
}

#[test]
fn unmounts_while_blocks_are_stored() {
    let routes = Routes::new();
    for (format, channel) in routes.iter() {
        for _ in 0..3 {
            let Some(mounted) = Mounted::new(format, channel, |_| {}) else { return };
            let (big, content) = (mounted.big(), mounted.content("big"));
            let unmounter = mounted.mount.unmounter();
            std::thread::scope(|scope| {
                for reader in 0..2 {
                    let (big, content) = (&big, &content);
                    scope.spawn(move || {
                        for offset in jumps().cycle().skip(reader).take(2000) {
                            assert!(page(big, offset).unwrap() == page_of(content, offset));
                            // So that the server is asked again, not the page cache.
                            fadvise(big, 0, None, Advice::DontNeed).unwrap();
                        }
                    });
                }
                unmounter.unmount(true).unwrap();
            });
            drop(big);
            mounted.mount.wait().unwrap();
        }
    }
}

#[test]
fn small_files_cost_two_requests_each_and_no_block_is_decoded_twice() {
    let routes = Routes::new();
    for (format, channel) in routes.iter() {
        let Some(mounted) = Mounted::new(format, channel, |_| {}) else { return };
        let before = mounted.mount.counters().requests;
        for index in 0..SMALL_COUNT {
            let name = format!("small{index}");
            let found = std::fs::read(mounted.mount.at().join(&name)).unwrap();
            assert!(found == mounted.content(&name), "{format} {channel:?}: {name}");
        }
        let (asked, counters) = (mounted.mount.counters().requests - before, mounted.opened.counters());
        // Forgetting is told, too, whenever the kernel likes.
        assert!(asked <= 2 * SMALL_COUNT as u64 + 10, "{format} {channel:?}: {asked}");
        // At the end of the walk, blocks after the last file are decoded ahead, but never
        // read.
        let needed = counters.decodes - (counters.readahead_blocks - counters.readahead_used);
        let blocks = counters.decoded_bytes / counters.decodes * needed / 20_000;
        assert!(blocks <= SMALL_COUNT as u64 + 10, "{format} {channel:?}: {counters:?}");
    }
}

#[test]
fn metadata_requests_decode_no_files() {
    let routes = Routes::new();
    for (format, channel) in routes.iter() {
        let Some(mounted) = Mounted::new(format, channel, |_| {}) else { return };
        for index in 0..SMALL_COUNT {
            let found = std::fs::metadata(mounted.mount.at().join(format!("small{index}"))).unwrap();
            assert_eq!(found.len(), 20_000 + index as u64);
        }
        assert_eq!(mounted.opened.counters().decodes, 0, "{format} {channel:?}");
    }
}

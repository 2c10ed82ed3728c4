//! Requests and their times.

use super::*;
use crate::advise::forecast::pattern::FilePattern;
use packfs::KernelRead;

/// A millisecond a request, and one for each MiB.
struct Slow(Seconds);

impl Device for Slow {
    fn read(&mut self, now: Seconds, _offset: u64, len: u64) -> Seconds {
        self.0 = self.0.max(now) + 1e-3 + len as f64 / 1048576.0 * 1e-3;
        self.0
    }

    fn read_ahead(&self) -> u64 {
        128 << 10
    }
}

const K: u64 = 1 << 10;

fn touch(offset: u64, from: u64, shared: bool, tail_at: Option<u64>) -> KernelBlock {
    let read = KernelRead { offset, stored: 64 << 10, decoded: 128 << 10 };
    KernelBlock { read, compressed: true, range: from..from + 128 * K, shared, tail_at }
}

const SQUASHFS: KernelCache =
    KernelCache::Blocks { metadata: 8, shared: 3, header_len: 2, unit: 1024, edges_since: Some((6, 5)) };
const EROFS: KernelCache = KernelCache::Pages { len: PAGE };

fn pattern(cache: KernelCache, files: Vec<Vec<KernelBlock>>) -> Pattern {
    let files = files.into_iter().map(|blocks| FilePattern { metadata: Vec::new(), blocks }).collect();
    Pattern { cache, mounted: Vec::new(), files, tails_len: (0, 0) }
}

const COST: Cost = Cost { per_byte: 1e-3 / 131072.0, per_file: 0.0 };

#[test]
fn squashfs_waits_and_decodes_in_turn() {
    let own = (0..8).map(|n| touch(n * 64 * K, n * 128 * K, false, None)).collect();
    let time = forecast(&pattern(SQUASHFS, vec![own]), &as_it_is(0), &COST, &mut Slow(0.0));
    assert_eq!((time.requests, time.bytes), (8, 512 * K));
    assert!((time.seconds - 8.0 * (1e-3 + 0.0625e-3 + 1e-3)).abs() < 1e-9, "{time:?}");
}

#[test]
fn erofs_reads_ahead_while_it_decodes() {
    let own: Vec<KernelBlock> = (0..8).map(|n| touch(n * 64 * K, n * 128 * K, false, None)).collect();
    let time = forecast(&pattern(EROFS, vec![own]), &as_it_is(64 * K), &COST, &mut Slow(0.0));
    let alone = 8.0 * (1e-3 + 0.0625e-3 + 1e-3);
    assert!(time.seconds < alone * 0.65, "{time:?}");
    assert!(time.seconds >= 8.0 * 1.0625e-3, "{time:?}");
}

#[test]
fn a_fourth_shared_block_pushes_the_first_out_of_squashfs_and_none_out_of_erofs() {
    let files = |packed: bool| {
        let of = |n: u64| vec![touch(n * 64 * K, 0, true, packed.then_some(n * 128 * K))];
        [0, 1, 2, 0, 3, 1, 0].map(of).to_vec()
    };
    let time = forecast(&pattern(SQUASHFS, files(false)), &as_it_is(0), &COST, &mut Slow(0.0));
    // 0 1 2, 0 again, 3 pushes 0 out, 1 is still there, 0 pushes it out.
    assert_eq!(time.requests, 5);
    let mut erofs = pattern(EROFS, files(true));
    erofs.tails_len = (4 * 128 * K, 4 * 64 * K);
    let time = forecast(&erofs, &as_it_is(64 * K), &COST, &mut Slow(0.0));
    assert_eq!(time.requests, 4);
}

/// A device with blocks as long as pages, and a kernel that keeps edges.
struct Paged;

impl Device for Paged {
    fn read(&mut self, now: Seconds, _offset: u64, _len: u64) -> Seconds {
        now
    }

    fn read_ahead(&self) -> u64 {
        128 << 10
    }

    fn block_len(&self) -> u64 {
        PAGE
    }

    fn is_since(&self, version: (u16, u16)) -> bool {
        version == (6, 5)
    }
}

#[test]
fn pages_that_were_needed_in_part_are_read_once() {
    let read = |offset| KernelRead { offset, stored: 3000, decoded: 8192 };
    let file = |offset| FilePattern { metadata: vec![read(offset)], blocks: Vec::new() };
    let requests = |places: &[u64], device: &mut dyn Device| {
        let files = places.iter().map(|&offset| file(offset)).collect();
        let pattern = Pattern { files, ..pattern(SQUASHFS, Vec::new()) };
        forecast(&pattern, &as_it_is(0), &COST, device).requests
    };
    // The length stands in the same page as all the rest.
    assert_eq!(requests(&[10], &mut Paged), 1);
    // The rest goes on in the next page, where the second begins and ends.
    assert_eq!(requests(&[2000, 5100], &mut Paged), 2);
    assert_eq!(requests(&[2000, 5100], &mut Slow(0.0)), 4);
}

#[test]
fn a_denser_codec_reads_less_and_decodes_as_much() {
    let own: Vec<KernelBlock> = (0..8).map(|n| touch(n * 64 * K, n * 128 * K, false, None)).collect();
    let all = pattern(SQUASHFS, vec![own]);
    let full = forecast(&all, &as_it_is(0), &COST, &mut Slow(0.0));
    let half = forecast(&all, &Scaling { data: 0.5, metadata: 0.5, cluster: 0 }, &COST, &mut Slow(0.0));
    assert_eq!((half.bytes, half.decoded), (full.bytes / 2, full.decoded));
    assert!(half.seconds < full.seconds);
}

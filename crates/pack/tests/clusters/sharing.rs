//! Equal data is stored once.

use crate::check::{check, place};
use crate::fake::{BLOCK_LEN, CLUSTER_LEN, Fake, Files, cut, pack_with};
use packfs_codec::{CodecSettings, Lz4Settings};
use packfs_format::{Tail, TailPlace};
use packfs_testkit::Random;
use std::collections::HashMap;

const LZ4: CodecSettings = CodecSettings::Lz4(Lz4Settings { acceleration: 1 });

#[test]
fn the_same_file_twice_is_stored_once_for_any_content() {
    let mut random = Random::new(10);
    let once = [random.text(700), random.text(100_000), random.noise(5000), random.noise(100_001)];
    let twice = Files::new([once.clone(), once.clone()].concat());
    let once = Files::new(once.to_vec());
    for job in [
        |_| (Tail::Own, 0),
        |_| (Tail::Shared, 0),
        |_| (Tail::SharedWhole, 0),
        |_| (Tail::Own, 1),
        |_| (Tail::Own, 2),
    ] as [fn(u64) -> _; 5]
    {
        let packed = pack_with(&Fake::new(cut(LZ4, CLUSTER_LEN), job), &twice, 2);
        check(&packed, &twice);
        let alone = pack_with(&Fake::new(cut(LZ4, CLUSTER_LEN), job), &once, 2);
        assert_eq!(packed.report.data_len, alone.report.data_len);
        assert_eq!(packed.report.duplicate_files, 4);
        assert_eq!(packed.report.duplicate_bytes, 700 + 100_000 + 5000 + 100_001);
        for index in 0..4 {
            assert_eq!(place(&packed, index), place(&packed, index + 4));
        }
    }
}

#[test]
fn files_stored_at_one_place_of_the_source_are_not_read_twice() {
    let mut random = Random::new(10);
    let (text, noise) = (random.text(100_000), random.noise(100_000));
    let mut files = Files::new(vec![text.clone(), text.clone(), noise.clone(), text, noise]);
    files.places = HashMap::from([(0, 7), (1, 7), (2, 8), (3, 7), (4, 9)]);
    files.broken = vec![1, 3];
    let packed = pack_with(&Fake::new(cut(LZ4, CLUSTER_LEN), |_| (Tail::Own, 0)), &files, 2);
    files.broken.clear();
    check(&packed, &files);
    assert_eq!(packed.report.duplicate_files, 3);
    for (index, first) in [(1, 0), (3, 0), (4, 2)] {
        assert_eq!(place(&packed, index), place(&packed, first));
    }
}

#[test]
fn equal_tails_lie_in_the_packed_stream_once() {
    let mut random = Random::new(11);
    let tail = random.text(333);
    let files = Files::new(vec![random.text(4000), tail.clone(), random.text(90), tail.clone(), tail]);
    let packed = pack_with(&Fake::new(cut(LZ4, CLUSTER_LEN), |_| (Tail::Shared, 0)), &files, 2);
    check(&packed, &files);
    assert_eq!(packed.placed.data.packed.unwrap().1, 4000 + 333 + 90);
    assert_eq!(place(&packed, 1).tail, place(&packed, 4).tail);

    let mut apart = cut(LZ4, CLUSTER_LEN);
    apart.share_tails = false;
    let packed = pack_with(&Fake::new(apart, |_| (Tail::Shared, 0)), &files, 2);
    check(&packed, &files);
    assert_eq!(packed.placed.data.packed.unwrap().1, 4000 + 3 * 333 + 90);
}

#[test]
fn equal_chunks_are_stored_once() {
    let mut random = Random::new(12);
    let chunk = random.noise(2 * BLOCK_LEN as usize);
    let files = Files::new(vec![
        [chunk.clone(), random.noise(2048), chunk.clone(), chunk.clone()].concat(),
        [random.noise(1024), chunk.clone(), chunk[..700].to_vec()].concat(),
        [random.noise(1024), chunk[..700].to_vec()].concat(),
    ]);
    let packed = pack_with(&Fake::new(cut(LZ4, CLUSTER_LEN), |_| (Tail::Own, 2)), &files, 2);
    check(&packed, &files);
    assert_eq!(packed.report.data_len, 1024 + 2048 + 1024 + 1024 + 1024);
    let apart = Fake { dedupe: false, ..Fake::new(cut(LZ4, CLUSTER_LEN), |_| (Tail::Own, 2)) };
    let packed = pack_with(&apart, &files, 2);
    check(&packed, &files);
    assert_eq!(packed.report.data_len, 1024 * 5 + 1024 * 3 + 1024 * 2);
}

#[test]
fn inline_tails_are_kept_for_each_file() {
    let mut random = Random::new(13);
    let files = Files::new((0..200).map(|i| random.text(i * 37 + 1)).collect());
    for recipe in [|_| (Tail::Inline, 0), |_| (Tail::Inline, 1)] as [fn(u64) -> _; 2] {
        let packed = pack_with(&Fake::new(cut(LZ4, CLUSTER_LEN), recipe), &files, 2);
        check(&packed, &files);
        let is_inline = |i| matches!(place(&packed, i).tail, Some(TailPlace::Inline(_)));
        // Files of up to three quarters of a block, and ends of longer ones.
        assert!((0..=10).all(is_inline));
        let inline = (11..200).filter(|&i| is_inline(i)).count();
        assert!(inline > 40, "{inline}");
    }
}

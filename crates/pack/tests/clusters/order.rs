//! Order of small files in the packed stream.

use crate::check::{check, place};
use crate::determinism::same_with_any_number_of_threads;
use crate::fake::{CLUSTER_LEN, Fake, Files, cut, try_pack};
use packfs_codec::{CodecSettings, Lz4Settings};
use packfs_core::{Order, Silent};
use packfs_format::{Tail, TailPlace};
use packfs_pack::PackOptions;
use packfs_testkit::Random;

const LZ4: CodecSettings = CodecSettings::Lz4(Lz4Settings { acceleration: 1 });

fn format() -> Fake {
    Fake::new(cut(LZ4, CLUSTER_LEN), |_| (Tail::Shared, 0))
}

/// Six kinds of files, each text with its own changes, never two of a kind side by side.
fn mixed_files() -> Files {
    let mut random = Random::new(31);
    let kinds: Vec<Vec<u8>> = (0..6).map(|_| random.noise(1200)).collect();
    let mut all = Vec::new();
    for _ in 0..8 {
        for kind in &kinds {
            all.push([&kind[..], &random.noise(40)].concat());
        }
    }
    Files::new(all)
}

/// Returns indexes of files in their order in the packed stream.
fn placed(files: &Files, order: Order) -> (Vec<usize>, u64) {
    let options = PackOptions { jobs: 2, order, ..PackOptions::default() };
    let packed = try_pack(&format(), files, &options, &Silent).unwrap();
    check(&packed, files);
    let offset = |index: usize| match place(&packed, index).tail {
        Some(TailPlace::Packed { offset }) => offset,
        other => panic!("file {index} is not in the packed stream but {other:?}"),
    };
    let mut indexes: Vec<usize> = (0..48).collect();
    indexes.sort_by_key(|&index| offset(index));
    (indexes, packed.report.data_len)
}

#[test]
fn files_lie_beside_those_they_have_most_in_common_with() {
    let files = mixed_files();
    let (along_tree, path_len) = placed(&files, Order::Path);
    assert!(along_tree.is_sorted());
    let (alike, len) = placed(&files, Order::Similarity(None));
    for kind in alike.chunks(8) {
        assert!(kind.iter().all(|index| index % 6 == kind[0] % 6), "{alike:?}");
    }
    assert!(len < path_len / 2, "{len} of {path_len} bytes");
}

#[test]
fn files_stay_within_the_stretch_of_the_tree_that_is_allowed() {
    let files = mixed_files();
    // A file has 1240 bytes: twelve of them, two of each kind, form a range.
    let (order, _) = placed(&files, Order::Similarity(Some(12 * 1240 + 1239)));
    for (number, stretch) in order.chunks(12).enumerate() {
        assert!(stretch.iter().all(|index| index / 12 == number), "{order:?}");
        assert!(stretch.chunks(2).all(|pair| pair[0] % 6 == pair[1] % 6), "{order:?}");
    }
}

#[test]
fn the_order_does_not_depend_on_the_number_of_threads() {
    same_with_any_number_of_threads(format, &mixed_files());
}

//! SquashFS images: every codec, and every way to store tails.

use super::shards::{merged, merges, packed};
use crate::common::Wish;
use packfs_testkit::{odd_tree, plain_tree};

const BLOCK_LEN: u32 = 16 << 10;

#[test]
fn shards_of_every_codec_are_the_whole_tree() {
    let (tree, contents) = odd_tree(BLOCK_LEN as usize, true);
    for codec in ["gzip", "lzo", "lz4", "lz4hc", "xz", "xz,dict=8K", "zstd:3", "none"] {
        merges("squashfs", (&tree, &contents), Wish { codec, block_len: BLOCK_LEN, ..Wish::default() }, 3);
    }
}

#[test]
fn one_to_fifty_shards_are_the_whole_tree() {
    let (tree, contents) = odd_tree(BLOCK_LEN as usize, true);
    for count in [1, 2, 7, 50] {
        let wish = Wish { block_len: BLOCK_LEN, ..Wish::default() };
        let report = merges("squashfs", (&tree, &contents), wish, count);
        assert_eq!(report.report.images, count as u64);
    }
}

#[test]
fn shards_with_every_option_are_the_whole_tree() {
    let (tree, contents) = odd_tree(BLOCK_LEN as usize, true);
    for options in [
        &[("fragments", "off")][..],
        &[("fragments", "always")],
        &[("uncompressed", "inodes,xattrs")],
        &[("uncompressed", "all")],
        &[("duplicates", "keep"), ("exports", "off")],
        &[("holes", "off")],
    ] {
        merges("squashfs", (&tree, &contents), Wish { block_len: BLOCK_LEN, options, ..Wish::default() }, 4);
    }
}

#[test]
fn shards_without_entries_add_nothing() {
    let (tree, contents) = plain_tree();
    // More shards than entries.
    merges("squashfs", (&tree, &contents), Wish { block_len: 128 << 10, ..Wish::default() }, 100);
}

#[test]
fn only_metadata_is_read_and_the_same_inputs_give_the_same_bytes() {
    let (tree, contents) = plain_tree();
    let folder = tempfile::tempdir().unwrap();
    let images =
        packed("squashfs", &tree, &contents, Wish { codec: "none", ..Wish::default() }, 5, folder.path());
    let (image, report) = merged(&images, folder.path());
    let bytes = std::fs::read(&image).unwrap();
    let data_len = report.report.moved_bytes;
    assert!(data_len > 2_000_000, "{report:?}");
    assert!(report.report.moved_by_system_bytes == 0 || report.read_bytes < data_len / 20, "{report:?}");
    let (again, _) = merged(&images, folder.path());
    assert_eq!(std::fs::read(again).unwrap(), bytes);
}

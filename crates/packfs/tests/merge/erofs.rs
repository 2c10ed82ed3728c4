//! EROFS images: every codec, form of index, and way to store tails.

use crate::common::Wish;
use crate::shards::merges;
use packfs_testkit::odd_tree;

const CLUSTER_LEN: u32 = 16 << 10;

#[track_caller]
fn shards_merge(codec: &str, options: &[(&str, &str)], count: usize) {
    let (tree, contents) = odd_tree(CLUSTER_LEN as usize, true);
    merges("erofs", (&tree, &contents), Wish { codec, block_len: CLUSTER_LEN, options, jobs: 2 }, count);
}

#[test]
fn shards_of_every_codec_are_the_whole_tree() {
    for codec in ["lz4", "lz4hc", "none"] {
        shards_merge(codec, &[], 3);
    }
    for codec in ["lzma", "deflate"] {
        shards_merge(codec, &[("kernel", "6.6")], 3);
    }
    shards_merge("zstd:3", &[("kernel", "6.12")], 3);
    shards_merge("zstd:3+lz4", &[("kernel", "6.12")], 3);
}

#[test]
fn one_to_fifty_shards_are_the_whole_tree() {
    for count in [1, 2, 7, 50] {
        shards_merge("lz4hc", &[], count);
    }
}

#[test]
fn shards_with_every_form_of_index_are_the_whole_tree() {
    for index in ["full", "compact", "auto"] {
        shards_merge("lz4", &[("index", index)], 4);
    }
}

#[test]
fn shards_with_48_bit_addresses_are_the_whole_tree() {
    for options in [
        &[("48bit", "on")][..],
        &[("index", "extents")],
        &[("byte-aligned", "on")],
        &[("index", "extents"), ("dedupe", "ranges")],
        &[("metabox", "64K")],
    ] {
        let options = [&[("kernel", "6.18")], options].concat();
        shards_merge("lz4hc", &options, 4);
        shards_merge("zstd:3+lz4", &options, 2);
    }
}

#[test]
fn tails_stay_wherever_they_are() {
    for options in [
        &[("fragments", "off")][..],
        &[("fragments", "all")],
        &[("fragments", "off"), ("inline-tails", "on"), ("kernel", "6.1")],
        &[("fragments", "tails"), ("interlaced", "on")],
        &[("dedupe", "ranges")],
        &[("dedupe", "off"), ("holes", "off")],
        &[("chunks", "16K")],
        &[("block", "1024"), ("kernel", "6.8")],
    ] {
        shards_merge("lz4hc", options, 4);
    }
}

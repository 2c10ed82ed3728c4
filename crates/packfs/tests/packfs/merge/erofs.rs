//! EROFS images: every codec, form of index, and way to store tails.

use super::shards::merges;
use crate::common::Wish;
use packfs_core::{Held, ImagePath, Meta, NodeKind, TreeBuilder, Xattrs};
use packfs_testkit::{Random, odd_tree};

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

/// The entries of a compact index stand by its offset from a multiple of 32 bytes, which follows
/// from the length of the attributes before it.
#[test]
fn compact_indexes_merge_at_every_offset() {
    let (mut builder, mut contents) = (TreeBuilder::new(Meta::default()), Held::default());
    for index in 0..24 {
        let content = contents.push(Random::new(index).text(150_000 + index as usize * 4096));
        let kind = NodeKind::File { len: 150_000 + index * 4096, content };
        let xattrs = Xattrs::from([(b"user.of".to_vec(), vec![index as u8; index as usize * 4])]);
        let path = ImagePath::parse(format!("dir/file{index}").as_bytes()).unwrap();
        builder.add(&path, kind, Meta::default(), if index == 0 { Xattrs::new() } else { xattrs }).unwrap();
    }
    let tree = builder.finish().unwrap();
    for options in [&[("index", "compact"), ("fragments", "off")][..], &[("index", "compact")]] {
        merges("erofs", (&tree, &contents), Wish { codec: "lz4", block_len: 4096, options, jobs: 2 }, 3);
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

//! The kernel's own mount judges what packfs writes: every name and every fact of it, for each
//! codec and option.

use crate::common::{Wish, squash};
use packfs::PackSettings;
use packfs_testkit::{Compare, Mount, Snapshot, is_root, odd_tree, skip, snapshot_dir, snapshot_tree};

/// Packs the odd tree as wished, mounts it, and compares.
#[track_caller]
fn kernel_agrees(wish: Wish<'_>) {
    if !is_root() {
        return skip("mounting needs root");
    }
    let (tree, contents) = odd_tree(wish.block_len as usize, true);
    let folder = tempfile::tempdir().unwrap();
    let image = squash(&tree, &contents, wish, folder.path(), "odd");
    let mount = Mount::new(&image, "squashfs").unwrap();
    let what = format!("{} {} {:?}", wish.codec, wish.block_len, wish.options);
    snapshot_tree(&tree, &contents).assert_same(&snapshot_dir(&mount.path()), Compare::default(), &what);
    kernel_sees_holes(&snapshot_dir(&mount.path()), &what);
}

#[track_caller]
fn kernel_sees_holes(mounted: &Snapshot, what: &str) {
    let stored = |name: &str| mounted.0[name.as_bytes()].stored_len.unwrap();
    if !what.contains("holes") {
        assert_eq!(stored("holes/all"), 0, "{what}");
        assert!(stored("holes/middle") < mounted.0[&b"holes/middle"[..]].len, "{what}");
    }
}

#[test]
fn the_kernel_reads_every_codec_at_every_block_size() {
    // Quick levels: the kernel cannot tell how hard an encoder tried.
    let squashfs = packfs::formats::by_name("squashfs").unwrap();
    let low = packfs::codec::CODECS.iter().map(|codec| match &codec.levels {
        Some(levels) => format!("{}:{}", codec.name, levels.start().max(&-5)),
        None => codec.name.to_owned(),
    });
    for codec in &low.collect::<Vec<_>>() {
        let settings = PackSettings { codec: Some(codec.clone()), ..PackSettings::default() };
        if !squashfs.packer(&settings).is_ok_and(|packer| packer.driver().is_some()) {
            continue;
        }
        for block_len in [4096, 128 << 10, 1 << 20] {
            kernel_agrees(Wish { codec, block_len, ..Wish::default() });
        }
    }
}

#[test]
fn the_kernel_reads_every_option() {
    for options in [
        &[("fragments", "off")][..],
        &[("fragments", "always")],
        &[("uncompressed", "inodes")],
        &[("uncompressed", "data")],
        &[("uncompressed", "fragments")],
        &[("uncompressed", "xattrs")],
        &[("uncompressed", "ids")],
        &[("uncompressed", "all")],
        &[("duplicates", "keep")],
        &[("holes", "off")],
        &[("exports", "off")],
        &[("fragments", "always"), ("duplicates", "keep"), ("exports", "off")],
    ] {
        kernel_agrees(Wish { codec: "zstd:3", options, ..Wish::default() });
    }
}

#[test]
fn the_kernel_reads_every_setting_of_a_codec() {
    for codec in [
        "none",
        "gzip:1",
        "gzip:12",
        "gzip:6,window=9",
        "gzip:6,strategy=default+filtered+huffman+rle+fixed",
        "lzo:1",
        "lzo:9",
        "lzo,variant=1",
        "lzo,variant=1_11",
        "lzo,variant=1_12",
        "lzo,variant=1_15",
        "lz4,acceleration=9",
        "lz4hc:3",
        "xz,dict=8K",
        "xz:9,dict=128K,extreme",
        "xz,bcj=x86",
        "xz,bcj=arm+armthumb+powerpc+sparc+ia64",
        "zstd:1",
        "zstd:22",
        "zstd:-5",
    ] {
        // A dictionary is at most as long as a block.
        let block_len = if codec.contains("dict=128K") { 128 << 10 } else { 16 << 10 };
        kernel_agrees(Wish { codec, block_len, ..Wish::default() });
    }
}

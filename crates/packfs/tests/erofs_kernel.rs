//! The kernel's own mount judges what packfs writes as EROFS, and so do erofs-utils: every name, fact and byte.

mod common;

use common::{Wish, erofs, read_image};
use packfs_testkit::{Compare, Mount, is_root, odd_tree, peer, skip, snapshot_dir, snapshot_tree};
use std::path::Path;

/// Packs the odd tree as wished; the kernel, fsck.erofs and erofsfuse must find the same in it.
#[track_caller]
fn all_agree(wish: Wish<'_>) {
    if !is_root() {
        return skip("mounting needs root");
    }
    let (tree, contents) = odd_tree(wish.block_len as usize, true);
    let folder = tempfile::tempdir().unwrap();
    let image = erofs(&tree, &contents, wish, folder.path(), "odd");
    let what = format!("{} {} {:?}", wish.codec, wish.block_len, wish.options);
    let expected = snapshot_tree(&tree, &contents);
    let mount = Mount::new(&image, "erofs").unwrap_or_else(|e| panic!("{what}: {e}"));
    expected.assert_same(&snapshot_dir(&mount.path()), Compare { nanos: true, ..Compare::default() }, &what);
    drop(mount);
    let (read, findings) = read_image(&image);
    expected.assert_same(&read, Compare { nanos: true, ..Compare::default() }, &what);
    assert!(findings.is_empty(), "{what}: {:?}", &findings[..findings.len().min(3)]);
    if let Some(fsck) = peer("fsck.erofs") {
        fsck_agrees(&fsck, &image, &what);
    }
}

/// Every file decodes, and every structure is sound.
#[track_caller]
fn fsck_agrees(fsck: &packfs_testkit::Peer, image: &Path, what: &str) {
    let output = fsck.command(&[&"--extract", &image]).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&text));
}

#[test]
fn the_kernel_reads_every_codec_at_every_cluster_size() {
    for codec in ["none", "lz4", "lz4hc:9", "deflate:1", "zstd:3", "lzma:0"] {
        for block_len in [4096, 16 << 10, 64 << 10, 1 << 20] {
            all_agree(Wish { codec, block_len, ..Wish::default() });
        }
    }
}

#[test]
fn the_kernel_reads_every_option() {
    for options in [
        &[("fragments", "off")][..],
        &[("fragments", "off"), ("inline-tails", "off")],
        &[("fragments", "off"), ("index", "full")],
        &[("fragments", "off"), ("index", "compact")],
        &[("fragments", "all")],
        &[("fragments", "all"), ("packed-cluster", "256K")],
        &[("dedupe", "off")],
        &[("dedupe", "ranges")],
        &[("index", "full")],
        &[("index", "extents")],
        &[("index", "extents"), ("fragments", "off")],
        &[("byte-aligned", "on")],
        &[("byte-aligned", "on"), ("fragments", "all")],
        &[("48bit", "on")],
        &[("48bit", "on"), ("fragments", "off")],
        &[("metabox", "16K")],
        &[("metabox", "64K"), ("fragments", "off")],
        &[("dot-omitted", "on")],
        &[("chunks", "4K")],
        &[("chunks", "64K")],
        &[("holes", "off")],
        &[("times", "keep"), ("epoch", "0")],
        &[("epoch", "0"), ("48bit", "on")],
        &[("xattr-filter", "off")],
        &[("shared-xattrs", "off")],
        &[("prefixes", "trusted.n+trusted.own-"), ("kernel", "6.18")],
        &[("prefixes", "trusted.n+user.x."), ("fragments", "off")],
        &[("align", "1M")],
        &[("checksum", "off"), ("uuid", "none"), ("label", "fifteen bytes..")],
        &[("order", "kind")],
        &[("rule", "*.txt=zstd:3@4K"), ("rule", "many=none"), ("rule", "text-*=lzma:1@64K")],
    ] {
        all_agree(Wish { codec: "lz4hc:3", block_len: 16 << 10, options, ..Wish::default() });
    }
}

#[test]
fn the_kernel_reads_small_blocks() {
    for block in ["512", "1024", "2048"] {
        for options in [
            &[("block", block)][..],
            &[("block", block), ("fragments", "off")],
            &[("block", block), ("index", "full")],
            &[("block", block), ("index", "extents")],
            &[("block", block), ("metabox", "4K")],
        ] {
            all_agree(Wish { codec: "lz4hc:3", block_len: 8 << 10, options, ..Wish::default() });
        }
        all_agree(Wish {
            codec: "none",
            block_len: 8 << 10,
            options: &[("block", block)],
            ..Wish::default()
        });
    }
}

#[test]
fn the_kernel_reads_every_profile() {
    for kernel in ["5.4", "5.10", "5.15", "6.1", "6.6", "6.12", "6.18"] {
        for codec in ["none", "lz4hc:9"] {
            all_agree(Wish { codec, block_len: 4096, options: &[("kernel", kernel)], ..Wish::default() });
        }
    }
}

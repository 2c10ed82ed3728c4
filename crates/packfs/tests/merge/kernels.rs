//! Kernels of older releases read merged images.

use crate::common::Wish;
use crate::shards::{merged, packed};
use packfs::Silent;
use packfs_source::{Shape, TarInput, load_tar};
use packfs_testkit::{Compare, OldKernel, plain_tree, snapshot_tree};

#[track_caller]
fn reads(version: &str, format: &str, wish: Wish<'_>) {
    let Some(kernel) = OldKernel::find(version) else { return };
    let (tree, contents) = plain_tree();
    let folder = tempfile::tempdir().unwrap();
    let images = packed(format, &tree, &contents, wish, 3, folder.path());
    let (image, _) = merged(&images, folder.path());
    let tar = folder.path().join("tar");
    kernel.tar_of(&image, format, &tar).unwrap_or_else(|said| panic!("{format} in {version}: {said}"));
    let copied = load_tar(TarInput::File(tar), &Shape::default(), &Silent).unwrap();
    // Busybox knows whole seconds only, and no attributes.
    let compare = Compare { xattrs: false, dir_links: false, ..Compare::default() };
    let copied = snapshot_tree(&copied.tree, &*copied.contents);
    snapshot_tree(&tree, &contents).assert_same(&copied, compare, &format!("{format} in {version}"));
}

#[test]
fn kernel_5_10_reads_merged_images() {
    reads("5.10", "squashfs", Wish { codec: "zstd", ..Wish::default() });
    let options = &[("kernel", "5.10")];
    reads("5.10", "erofs", Wish { codec: "lz4hc", options, ..Wish::default() });
}

#[test]
fn kernel_6_1_reads_merged_images() {
    let options = &[("kernel", "6.1"), ("fragments", "tails")];
    reads("6.1", "erofs", Wish { codec: "lz4hc", block_len: 64 << 10, options, ..Wish::default() });
}

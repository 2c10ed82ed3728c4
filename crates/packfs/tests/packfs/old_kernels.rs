//! Kernels of older releases read what packfs writes: each boots in a virtual machine, mounts an
//! image and copies it.

use crate::common::{Wish, erofs, squash};
use packfs_core::Silent;
use packfs_source::{Shape, TarInput, load_tar};
use packfs_testkit::{Compare, OldKernel, plain_tree, snapshot_tree};
use std::path::PathBuf;

/// Mounts images, each with what it shows, in an old kernel, and compares what that copies with the
/// plain tree.
#[track_caller]
fn old_kernel_agrees(version: &str, format: &str, images: &[(PathBuf, String)]) {
    let Some(kernel) = OldKernel::find(version) else { return };
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = images.iter().map(|(image, _)| image.clone()).collect();
    let tars = kernel.tars_in(folder.path(), format, &paths);
    let (tree, contents) = plain_tree();
    for ((_, what), tar) in images.iter().zip(tars) {
        let copied = load_tar(TarInput::File(tar), &Shape::default(), &Silent).unwrap();
        // Busybox knows whole seconds only, and no attributes.
        let compare = Compare { xattrs: false, dir_links: false, ..Compare::default() };
        let copied = snapshot_tree(&copied.tree, &*copied.contents);
        snapshot_tree(&tree, &contents).assert_same(&copied, compare, &format!("{what} in {version}"));
    }
}

#[test]
fn old_kernels_read_squashfs_with_every_codec() {
    let (tree, contents) = plain_tree();
    let folder = tempfile::tempdir().unwrap();
    let images = ["gzip", "lzo", "lz4", "xz", "zstd"].map(|codec| {
        (squash(&tree, &contents, Wish { codec, ..Wish::default() }, folder.path(), codec), codec.to_owned())
    });
    old_kernel_agrees("5.10", "squashfs", &images);
}

#[test]
fn kernel_5_10_reads_erofs_made_for_it_and_for_older_ones() {
    erofs_is_read(
        "5.10",
        &[
            ("5.4", "none", 4096, &[]),
            ("5.4", "none", 4096, &[("inline-tails", "off")]),
            ("5.4", "lz4", 4096, &[("index", "full")]),
            ("5.10", "lz4hc:12", 4096, &[]),
        ],
    );
}

#[test]
fn kernel_6_1_reads_erofs_made_for_it_and_for_older_ones() {
    erofs_is_read(
        "6.1",
        &[
            ("5.10", "lz4", 4096, &[]),
            ("5.15", "lz4hc", 1 << 20, &[]),
            ("5.15", "none", 4096, &[("chunks", "64K")]),
            ("6.1", "none", 4096, &[("chunks", "4K")]),
            ("6.1", "lz4hc", 64 << 10, &[("fragments", "tails")]),
            ("6.1", "lz4hc:12", 64 << 10, &[]),
            ("6.1", "lz4", 16 << 10, &[("fragments", "all"), ("dedupe", "ranges")]),
            ("6.1", "lz4", 64 << 10, &[("fragments", "off"), ("inline-tails", "on")]),
            ("6.1", "lz4", 16 << 10, &[("interlaced", "on")]),
        ],
    );
}

/// Kernel that the image is for, codec, largest cluster, more options.
type Row<'a> = (&'a str, &'a str, u32, &'a [(&'a str, &'a str)]);

#[track_caller]
fn erofs_is_read(version: &str, rows: &[Row<'_>]) {
    let (tree, contents) = plain_tree();
    let folder = tempfile::tempdir().unwrap();
    let images = rows.iter().enumerate().map(|(number, &(made_for, codec, block_len, more))| {
        let options = &[&[("kernel", made_for)], more].concat();
        let wish = Wish { codec, block_len, options, ..Wish::default() };
        let image = erofs(&tree, &contents, wish, folder.path(), &number.to_string());
        (image, format!("{codec} {options:?}"))
    });
    old_kernel_agrees(version, "erofs", &images.collect::<Vec<_>>());
}

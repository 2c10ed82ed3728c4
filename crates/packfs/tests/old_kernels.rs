//! Kernels of older releases read what packfs writes: each boots in a virtual machine, mounts an image and copies it.

mod common;

use common::{Wish, squash};
use packfs_core::Silent;
use packfs_source::{Shape, TarInput, load_tar};
use packfs_testkit::{Compare, OldKernel, plain_tree, snapshot_tree};
use std::path::Path;

/// Mounts `image` in an old kernel and compares what it copies with the plain tree.
#[track_caller]
fn old_kernel_agrees(version: &str, image: &Path, format: &str, what: &str) {
    let Some(kernel) = OldKernel::find(version) else { return };
    let (tree, contents) = plain_tree();
    let tar = image.with_extension("tar");
    kernel.tar_of(image, format, &tar).unwrap_or_else(|said| panic!("{what} in {version}: {said}"));
    let copied = load_tar(TarInput::File(tar), &Shape::default(), &Silent).unwrap();
    // Busybox knows whole seconds only, and no attributes.
    let compare = Compare { xattrs: false, dir_links: false, ..Compare::default() };
    let copied = snapshot_tree(&copied.tree, &*copied.contents);
    snapshot_tree(&tree, &contents).assert_same(&copied, compare, &format!("{what} in {version}"));
}

#[test]
fn old_kernels_read_squashfs_with_every_codec() {
    let (tree, contents) = plain_tree();
    for codec in ["gzip", "lzo", "lz4", "xz", "zstd"] {
        let folder = tempfile::tempdir().unwrap();
        let image = squash(&tree, &contents, Wish { codec, ..Wish::default() }, folder.path(), "plain");
        old_kernel_agrees("5.10", &image, "squashfs", codec);
    }
}

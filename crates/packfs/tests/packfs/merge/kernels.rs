//! Kernels of older releases read merged images, in every form that they know.

use super::shards::packed;
use crate::common::Wish;
use packfs::{DataPlace, Silent};
use packfs_source::{Shape, TarInput, load_tar};
use packfs_testkit::{Compare, Disk, OldKernel, plain_tree, snapshot_tree};
use std::path::{Path, PathBuf};

/// EROFS forms of a merged image. Device tables are read from Linux 5.16 on, and flat images from
/// 6.4 on.
const FORMS: [DataPlace; 3] = [DataPlace::Image, DataPlace::Inputs, DataPlace::Flat];

#[track_caller]
fn reads(version: &str, format: &str, wish: Wish<'_>, places: &[DataPlace]) {
    let Some(kernel) = OldKernel::find(version) else { return };
    let (tree, contents) = plain_tree();
    let folder = tempfile::tempdir().unwrap();
    let images = packed(format, &tree, &contents, wish, 3, folder.path());
    let devices: Vec<&Path> = images.iter().map(PathBuf::as_path).collect();
    let merged = |place: DataPlace| {
        let image = folder.path().join(format!("{place:?}"));
        let merge = packfs::merge(&images, &image).data(place);
        merge.run().unwrap_or_else(|error| panic!("{format} {place:?}: {error}"));
        (image, folder.path().join(format!("{place:?}.tar")))
    };
    let paths: Vec<(PathBuf, PathBuf)> = places.iter().map(|place| merged(*place)).collect();
    let disks = places.iter().zip(&paths).map(|(place, (image, tar))| {
        let has_devices = matches!(place, DataPlace::Inputs);
        Disk { image, devices: if has_devices { &devices[..] } else { &[] }, tar }
    });
    let disks: Vec<Disk<'_>> = disks.collect();
    kernel.write_tars(format, &disks).unwrap_or_else(|said| panic!("{format} in {version}: {said}"));
    for (_, tar) in paths {
        let what = format!("{} in {version}", tar.display());
        let copied = load_tar(TarInput::File(tar), &Shape::default(), &Silent).unwrap();
        // Busybox knows whole seconds only, and no attributes.
        let compare = Compare { xattrs: false, dir_links: false, ..Compare::default() };
        let copied = snapshot_tree(&copied.tree, &*copied.contents);
        snapshot_tree(&tree, &contents).assert_same(&copied, compare, &what);
    }
}

#[test]
fn kernel_5_10_reads_merged_images() {
    reads("5.10", "squashfs", Wish { codec: "zstd", ..Wish::default() }, &[DataPlace::Image]);
    let options = &[("kernel", "5.10")];
    reads("5.10", "erofs", Wish { codec: "lz4hc", options, ..Wish::default() }, &[DataPlace::Image]);
}

#[test]
fn kernel_6_1_reads_merged_images_but_for_flat_ones() {
    let options = &[("kernel", "6.1"), ("fragments", "tails")];
    let wish = Wish { codec: "lz4hc", block_len: 64 << 10, options, ..Wish::default() };
    reads("6.1", "erofs", wish, &FORMS[..2]);
}

#[test]
fn kernel_6_12_reads_merged_images_in_every_form() {
    reads("6.12", "squashfs", Wish { codec: "gzip", ..Wish::default() }, &[DataPlace::Image]);
    let options = &[("kernel", "6.12"), ("fragments", "tails")];
    let wish = Wish { codec: "zstd:3+lz4", block_len: 64 << 10, options, ..Wish::default() };
    reads("6.12", "erofs", wish, &FORMS);
}

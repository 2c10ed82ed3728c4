//! More images than a process may usually have open files, in one merge and in merges of merged
//! images.

use super::shards::{packed, sound};
use crate::common::{Wish, read_image};
use packfs::{DataPlace, Merge, OpenOptions, Silent};
use packfs_core::{FileImage, Image};
use packfs_read::CountedImage;
use packfs_testkit::{Compare, Snapshot, odd_tree, snapshot_tree};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const COUNT: usize = 1500;
const GROUP: usize = 60;
/// Images that are merged again and again.
const SHARDS: usize = 40;

/// Mounts images under paths of their own; several of these share a directory.
fn mounted(output: &Path, range: std::ops::Range<usize>, images: &[PathBuf]) -> Merge {
    range.fold(packfs::merge(&[] as &[&Path], output), |merge, index| {
        let prefix = format!("dir{}/image{index}", index % 7);
        merge.at(prefix.as_str(), &images[index % images.len()]).unwrap()
    })
}

/// Merges in one go and in groups; both trees are the same.
#[track_caller]
fn many_merge(format: &str, wish: Wish<'_>) {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(4096, true);
    let images = packed(format, &tree, &contents, wish, SHARDS, folder.path());
    let whole = folder.path().join("whole");
    let report = mounted(&whole, 0..COUNT, &images).run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.report.images, COUNT as u64);
    let groups: Vec<PathBuf> = (0..COUNT / GROUP)
        .map(|group| {
            let output = folder.path().join(format!("group{group}"));
            mounted(&output, group * GROUP..(group + 1) * GROUP, &images).run().unwrap();
            output
        })
        .collect();
    let grouped = folder.path().join("grouped");
    packfs::merge(&groups, &grouped).run().unwrap();
    let (expected, findings) = read_image(&whole);
    assert!(findings.is_empty(), "{format}: {findings:?}");
    let (found, findings) = read_image(&grouped);
    assert!(findings.is_empty(), "{format}: {findings:?}");
    expected.assert_same(&found, Compare::default(), format);
    sound(&grouped, format);
    if format == "erofs" {
        merged_images_are_devices(&groups[..3], folder.path());
    }
}

/// Merged images are devices of another one like any image.
fn merged_images_are_devices(groups: &[PathBuf], folder: &Path) {
    let (index, one) = (folder.join("index"), folder.join("one"));
    packfs::merge(groups, &index).data(DataPlace::Inputs).run().unwrap();
    packfs::merge(groups, &one).run().unwrap();
    let opened = groups.iter().fold(OpenOptions::new(), OpenOptions::device).open(&index).unwrap();
    let loaded = opened.load(&Silent).unwrap();
    let found: Snapshot = snapshot_tree(&loaded.tree, &**opened.engine());
    read_image(&one).0.assert_same(&found, Compare::default(), "devices");
}

/// Volumes forget their metadata when they are told, and read it again.
#[track_caller]
fn forgets(format: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(4096, true);
    let wish = Wish { codec: "lz4", ..Wish::default() };
    let image = FileImage::open(&packed(format, &tree, &contents, wish, 1, folder.path())[0]).unwrap();
    let counted = CountedImage::new(Arc::new(image));
    let image: Arc<dyn Image> = counted.clone();
    let volume = packfs_formats::by_name(format).unwrap().open(image).unwrap();
    let reads_of_root = || {
        let before = counted.reads();
        volume.inode(volume.root()).unwrap();
        counted.reads() - before
    };
    reads_of_root();
    assert_eq!(reads_of_root(), 0, "{format}");
    volume.keep_at_most(0);
    assert_ne!(reads_of_root(), 0, "{format}");
    assert_eq!(reads_of_root(), 0, "{format}");
}

#[test]
fn volumes_forget_what_they_keep() {
    forgets("squashfs");
    forgets("erofs");
}

#[test]
fn fifteen_hundred_squashfs_images_merge_at_once_and_by_steps() {
    many_merge("squashfs", Wish { codec: "lz4", ..Wish::default() });
}

#[test]
fn fifteen_hundred_erofs_images_merge_at_once_and_by_steps() {
    let options = &[("fragments", "tails")];
    many_merge("erofs", Wish { codec: "lz4", block_len: 16 << 10, options, ..Wish::default() });
}

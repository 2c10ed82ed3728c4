//! Squashfs 2.0 to 3.1 as packfs writes it, of both byte orders: what unsquashfs and packfs itself make of it, and what becomes of
//! it when it is damaged.

mod common;

use common::damage::survives;
use common::{Wish, read_image};
use packfs_core::{Contents, DeviceNumber, FileType, PackSettings, Silent, Timestamp, Tree};
use packfs_pack::{PackOptions, PackReport, pack};
use packfs_testkit::{
    Compare, Snapshot, is_root, odd_tree, peer, plain_tree, skip, snapshot_dir, snapshot_tree,
};
use std::path::{Path, PathBuf};

const VERSIONS: [&str; 4] = ["2.0", "2.1", "3.0", "3.1"];
const ENDIANS: [&str; 2] = ["little", "big"];
const MADE_AT: i64 = 1_700_000_000;

fn settings(wish: &Wish<'_>) -> PackSettings {
    PackSettings {
        codec: Some(wish.codec.into()),
        block_len: Some(wish.block_len),
        made_at: MADE_AT,
        options: wish.options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        ..PackSettings::default()
    }
}

#[track_caller]
fn packed(tree: &Tree, contents: &dyn Contents, wish: Wish<'_>, folder: &Path) -> (PathBuf, PackReport) {
    let path = folder.join("old.sqfs");
    let format = packfs_formats::by_name("squashfs-legacy").unwrap();
    let packer = format.packer(&settings(&wish)).unwrap_or_else(|error| panic!("{error}"));
    let options = PackOptions { jobs: wish.jobs, sync: false, lossy: true, ..PackOptions::default() };
    let report = pack(tree, contents, &*packer, &path, &options, &Silent)
        .unwrap_or_else(|error| panic!("{:?}: {error}", wish.options));
    (path, report)
}

/// What a version holds of a tree.
fn held(whole: &Snapshot, version: &str) -> Snapshot {
    let mut held = whole.clone();
    for row in held.0.values_mut() {
        row.xattrs.clear();
        row.device = row
            .device
            .map(|DeviceNumber { major, minor }| DeviceNumber { major: major & 0xff, minor: minor & 0xff });
        if version < "3" && !matches!(row.file_type, FileType::File | FileType::Directory) {
            row.mtime = Timestamp::from_seconds(MADE_AT);
        }
    }
    held
}

/// Before 3.0 there are neither hard links nor link counts.
fn compare(version: &str) -> Compare {
    let numbered = version >= "3";
    Compare { hard_links: numbered, dir_links: numbered, ..Compare::default() }
}

#[test]
fn readers_agree_on_the_odd_tree() {
    if !is_root() {
        return skip("devices and owners need root");
    }
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(16 << 10, true);
    let whole = snapshot_tree(&tree, &contents);
    for version in VERSIONS {
        let expected = held(&whole, version);
        for (endian, more) in [
            ("little", &[][..]),
            ("big", &[]),
            ("little", &[("fragments", "always"), ("duplicates", "keep"), ("exports", "off")]),
            ("big", &[("fragments", "off"), ("uncompressed", "all"), ("padding", "none")]),
        ] {
            let options = [&[("version", version), ("endian", endian)], more].concat();
            let what = format!("{options:?}");
            let wish = Wish { block_len: 16 << 10, options: &options, ..Wish::default() };
            let (image, _) = packed(&tree, &contents, wish, folder.path());
            let (snapshot, findings) = read_image(&image);
            expected.assert_same(&snapshot, compare(version), &format!("{what}: packfs"));
            assert_eq!(findings, [], "{what}");
            let Some(unsquashfs) = peer("unsquashfs") else { continue };
            let to = folder.path().join("unsquashfs");
            unsquashfs.run(&[&"-d", &to, &"-no-progress", &"-quiet", &image]);
            // File systems count links of their own.
            let dirs = Compare { dir_links: true, ..compare(version) };
            expected.assert_same(&snapshot_dir(&to), dirs, &format!("{what}: unsquashfs"));
            std::fs::remove_dir_all(&to).unwrap();
        }
    }
}

#[test]
fn what_a_version_lacks_is_refused_unless_the_loss_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(4096, false);
    let path = folder.path().join("old.sqfs");
    for (version, lost) in
        [("2.1", &["extended attributes", "hard links"][..]), ("3.1", &["extended attributes"])]
    {
        let wish = Wish { options: &[("version", version)], ..Wish::default() };
        let packer = packfs_formats::by_name("squashfs-legacy").unwrap().packer(&settings(&wish)).unwrap();
        let error = pack(&tree, &contents, &*packer, &path, &PackOptions::default(), &Silent).unwrap_err();
        assert!(!path.exists());
        let text = format!("{error} {:?}", error.hints());
        for lost in lost {
            assert!(text.contains(lost), "{version}: {lost} in {text}");
        }
    }
}

#[test]
fn the_same_source_gives_the_same_bytes_with_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = plain_tree();
    for (version, endian) in [("2.0", "big"), ("3.1", "little")] {
        let options = &[("version", version), ("endian", endian)];
        let images = [1, 4].map(|jobs| {
            let wish = Wish { block_len: 64 << 10, options, jobs, ..Wish::default() };
            std::fs::read(packed(&tree, &contents, wish, folder.path()).0).unwrap()
        });
        assert!(images[0] == images[1], "{version}");
    }
}

#[test]
fn holes_and_twins_are_stored_once_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(4096, false);
    let len = |option| {
        let options = &[("version", "3.1"), ("padding", "none"), option];
        let (image, _) = packed(&tree, &contents, Wish { options, ..Wish::default() }, folder.path());
        std::fs::metadata(image).unwrap().len()
    };
    let least = len(("endian", "little"));
    assert!(len(("holes", "off")) > least);
    assert!(len(("duplicates", "keep")) > least);
}

#[test]
fn damage_to_any_structure_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = plain_tree();
    for (version, endian, more) in [
        ("2.0", "big", &[][..]),
        ("2.1", "little", &[("fragments", "always"), ("uncompressed", "inodes")]),
        ("3.0", "big", &[("uncompressed", "inodes,fragments")]),
        ("3.1", "little", &[]),
    ] {
        let options = [&[("version", version), ("endian", endian)], more].concat();
        let wish = Wish { block_len: 64 << 10, options: &options, ..Wish::default() };
        let (image, _) = packed(&tree, &contents, wish, folder.path());
        survives(&std::fs::read(image).unwrap(), 4, true, version);
    }
}

#[test]
fn damage_to_images_of_old_tools_is_survived() {
    let legacy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/legacy");
    for name in [
        "squashfs-1.0-be-manyuids",
        "squashfs-1.0-le-checkdata-b4096",
        "squashfs-2.1-le-lzma-7z",
        "squashfs-3.0-be-lzma",
        "squashfs-3.0-le-lzma-e2100",
        "squashfs-3.1-le-sqlzma",
    ] {
        let image = std::fs::read(legacy.join(format!("{name}.sqfs"))).unwrap();
        survives(&image, 4, false, name);
    }
}

#[test]
fn both_byte_orders_hold_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = plain_tree();
    for version in VERSIONS {
        let images = ENDIANS.map(|endian| {
            let options = &[("version", version), ("endian", endian)];
            let (image, _) = packed(&tree, &contents, Wish { options, ..Wish::default() }, folder.path());
            (std::fs::metadata(&image).unwrap().len(), read_image(&image).0)
        });
        let [little, big] = images;
        little.1.assert_same(&big.1, Compare::default(), version);
        assert!(little.0.abs_diff(big.0) <= 8192, "{version}: {} and {}", little.0, big.0);
    }
}

//! Squashfs 2.0 to 3.1 as packfs writes it, of both byte orders: what unsquashfs and packfs itself
//! make of it, and what becomes of it when it is damaged.

use crate::common::damage::survives;
use crate::common::{Wish, read_image, seven_zip_agrees, squash};
use packfs_core::FileImage;
use packfs_core::{Contents, DeviceNumber, FileType, Image, Result, Silent, Timestamp, Tree};
use packfs_format::PackSettings;
use packfs_pack::{PackOptions, PackReport, pack};
use packfs_testkit::{
    Compare, Snapshot, is_root, odd_tree, peer, plain_tree, skip, snapshot_dir, snapshot_tree,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const VERSIONS: [&str; 4] = ["2.0", "2.1", "3.0", "3.1"];
const ENDIANS: [&str; 2] = ["little", "big"];
const MADE_AT: i64 = 1_700_000_000;

fn settings(wish: &Wish<'_>) -> PackSettings {
    PackSettings {
        codec: Some(wish.codec.into()),
        block_size: Some(wish.block_len),
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

/// Returns the facts of a tree that a version can hold.
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

/// Compares the results of packfs and unsquashfs for a packed tree.
fn readers_agree(tree: &Tree, contents: &dyn Contents, options: &[(&str, &str)], folder: &Path) {
    let version = options[0].1;
    let expected = held(&snapshot_tree(tree, contents), version);
    let what = format!("{options:?}");
    let (image, _) = packed(tree, contents, Wish { block_len: 16 << 10, options, ..Wish::default() }, folder);
    let (snapshot, findings) = read_image(&image);
    expected.assert_same(&snapshot, compare(version), &format!("{what}: packfs"));
    assert_eq!(findings, [], "{what}");
    let Some(unsquashfs) = peer("unsquashfs") else { return };
    let to = folder.join("unsquashfs");
    unsquashfs.run(&[&"-d", &to, &"-no-progress", &"-quiet", &image]);
    // File systems count links of their own.
    let dirs = Compare { dir_links: true, ..compare(version) };
    expected.assert_same(&snapshot_dir(&to), dirs, &format!("{what}: unsquashfs"));
    std::fs::remove_dir_all(&to).unwrap();
}

#[test]
fn readers_agree_on_the_odd_tree() {
    if !is_root() {
        return skip("devices and owners need root");
    }
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(16 << 10, true);
    for (version, endian) in [("2.0", "big"), ("2.1", "little"), ("3.0", "little"), ("3.1", "big")] {
        readers_agree(&tree, &contents, &[("version", version), ("endian", endian)], folder.path());
    }
}

#[test]
fn seven_zip_reads_every_version_and_byte_order() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = plain_tree();
    let expected = snapshot_tree(&tree, &contents);
    for version in VERSIONS {
        for endian in ENDIANS {
            let options = &[("version", version), ("endian", endian)];
            let wish = Wish { block_len: 16 << 10, options, ..Wish::default() };
            let (image, _) = packed(&tree, &contents, wish, folder.path());
            seven_zip_agrees(&image, &expected, &format!("{options:?}"));
        }
    }
}

#[test]
fn readers_agree_on_every_way_to_pack() {
    if !is_root() {
        return skip("owners need root");
    }
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = plain_tree();
    for version in VERSIONS {
        for endian in ENDIANS {
            for more in [
                &[("fragments", "always"), ("duplicates", "keep"), ("exports", "off")][..],
                &[("fragments", "off"), ("uncompressed", "all"), ("padding", "none")],
            ] {
                let options = [&[("version", version), ("endian", endian)], more].concat();
                readers_agree(&tree, &contents, &options, folder.path());
            }
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
        survives(&std::fs::read(image).unwrap(), 3, true, version);
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

#[test]
fn an_unknown_magic_can_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = plain_tree();
    let wish = Wish { options: &[("version", "3.0"), ("endian", "big")], ..Wish::default() };
    let (image, _) = packed(&tree, &contents, wish, folder.path());
    let mut bytes = std::fs::read(&image).unwrap();
    bytes[..4].copy_from_slice(b"sqlz");
    std::fs::write(&image, bytes).unwrap();
    assert!(packfs::open(&image).is_err());
    let opened = packfs::OpenOptions::new().magic(*b"sqsh").open(&image).unwrap();
    let loaded = opened.load(&Silent).unwrap();
    let snapshot = snapshot_tree(&loaded.tree, &**opened.engine());
    snapshot_tree(&tree, &contents).assert_same(&snapshot, Compare::default(), "sqlz");
}

#[test]
fn what_was_given_up_is_no_fault_of_the_verified_image() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(4096, true);
    let source = squash(&tree, &contents, Wish::default(), folder.path(), "source");
    let old = folder.path().join("old.sqfs");
    for version in VERSIONS {
        let pack = packfs::pack(&source, &old).format("squashfs-legacy").option("version", version);
        let refused = pack.clone().run().unwrap_err();
        assert!(refused.hints().iter().any(|hint| hint.contains("--lossy")), "{refused}");
        pack.lossy(true).verify(true).run().unwrap_or_else(|error| panic!("{version}: {error}"));
        // And back, where nothing is lost that was there.
        let again = folder.path().join("again.sqfs");
        packfs::pack(&old, &again).format("squashfs").verify(true).run().unwrap();
        read_image(&old).0.assert_same(
            &read_image(&again).0,
            Compare { dir_links: false, ..compare(version) },
            version,
        );
    }
}

/// Counts how often an image is read.
struct Counting(FileImage, AtomicU64);

impl Image for Counting {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.read_at(offset, buf)
    }

    fn name(&self) -> String {
        self.0.name()
    }
}

#[test]
fn the_index_of_2_1_finds_a_name_without_the_names_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(4096, false);
    let reads = |version| {
        let options = &[("version", version)];
        let (path, _) = packed(&tree, &contents, Wish { options, ..Wish::default() }, folder.path());
        let image = Arc::new(Counting(FileImage::open(&path).unwrap(), AtomicU64::new(0)));
        let format = packfs_formats::by_name("squashfs-legacy").unwrap();
        let volume = format.open(Arc::clone(&image) as Arc<dyn Image>).unwrap();
        let many = volume.lookup(volume.root(), b"many").unwrap().unwrap();
        let before = image.1.load(Ordering::Relaxed);
        volume.lookup(many, b"a-rather-long-name-to-fill-blocks-02999").unwrap().unwrap();
        image.1.load(Ordering::Relaxed) - before
    };
    let (without, with) = (reads("2.0"), reads("2.1"));
    assert!(without > 12 && with <= 3, "{without} blocks without an index, {with} with it");
}

//! Images by mksquashfs and mkfs.erofs.

use super::shards::{agrees_with, merged, shards};
use crate::common::read_image;
use packfs_testkit::{is_root, odd_tree, peer, peer_since, skip, write_dir};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Writes the shards of the odd tree as directories, and the whole tree as the last one.
fn directories(folder: &Path, count: usize) -> Vec<PathBuf> {
    let (tree, contents) = odd_tree(16 << 10, true);
    let mut trees = shards(&tree, count);
    trees.push(tree);
    let write = |(index, tree)| {
        let path = folder.join(format!("tree{index}"));
        std::fs::create_dir(&path).unwrap();
        write_dir(tree, &contents, &path);
        path
    };
    trees.iter().enumerate().map(write).collect()
}

/// Merges the images of all shards, and compares with that of the whole tree.
#[track_caller]
fn agree(images: &[PathBuf], format: &str, folder: &Path, what: &str) {
    let Some((whole, shards)) = images.split_last() else { return };
    let (expected, _) = read_image(whole);
    let (image, _) = merged(shards, folder);
    agrees_with(&image, format, &expected, what);
}

#[test]
fn images_by_mksquashfs_merge() {
    if !is_root() {
        return skip("device nodes need root");
    }
    let Some(tool) = peer("mksquashfs") else { return };
    let folder = tempfile::tempdir().unwrap();
    let directories = directories(folder.path(), 3);
    for options in [
        &["-comp", "gzip"][..],
        &["-comp", "xz", "-Xbcj", "x86"],
        &["-comp", "zstd", "-always-use-fragments"],
        &["-no-fragments"],
    ] {
        let pack = |(index, from): (usize, &PathBuf)| {
            let to = folder.path().join(format!("{index}.sqfs"));
            let _ = std::fs::remove_file(&to);
            let usual = ["-noappend", "-no-progress", "-quiet", "-b", "16K"];
            let mut arguments: Vec<&dyn AsRef<OsStr>> = vec![from, &to];
            arguments.extend(usual.iter().chain(options).map(|word| word as &dyn AsRef<OsStr>));
            tool.run(&arguments);
            to
        };
        let images: Vec<PathBuf> = directories.iter().enumerate().map(pack).collect();
        agree(&images, "squashfs", folder.path(), &format!("mksquashfs {options:?}"));
    }
}

#[test]
fn images_by_mkfs_erofs_merge() {
    if !is_root() {
        return skip("device nodes need root");
    }
    let folder = tempfile::tempdir().unwrap();
    let directories = directories(folder.path(), 3);
    let cases = [
        ("1.7", &[][..]),
        ("1.7", &["-zlz4hc"]),
        ("1.7", &["-zlz4hc", "-C65536"]),
        ("1.7", &["-zlz4hc", "-Eztailpacking"]),
        ("1.7", &["-zlz4hc", "-C16384", "-Efragments"]),
        ("1.7", &["-zlz4hc", "-C16384", "-Eall-fragments"]),
        ("1.7", &["-zlz4hc", "-Ededupe,fragments"]),
        ("1.7", &["-zlz4hc", "-Elegacy-compress"]),
        ("1.8", &["-zzstd", "-C65536"]),
    ];
    for (version, options) in cases {
        let Some(tool) = peer_since("mkfs.erofs", version) else { continue };
        let pack = |(index, from): (usize, &PathBuf)| {
            let to = folder.path().join(format!("{index}.erofs"));
            let _ = std::fs::remove_file(&to);
            let mut arguments: Vec<&dyn AsRef<OsStr>> =
                options.iter().map(|word| word as &dyn AsRef<OsStr>).collect();
            arguments.extend([&to as &dyn AsRef<OsStr>, from]);
            tool.run(&arguments);
            to
        };
        let images: Vec<PathBuf> = directories.iter().enumerate().map(pack).collect();
        agree(&images, "erofs", folder.path(), &format!("mkfs.erofs {options:?}"));
    }
}

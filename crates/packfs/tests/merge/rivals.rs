//! Images by mksquashfs and mkfs.erofs.

use crate::shards::{agrees_with, merged, shards};
use packfs_testkit::{
    Snapshot, is_root, odd_tree, peer, peer_since, skip, snapshot_dir, snapshot_tree, write_dir,
};
use std::path::{Path, PathBuf};

/// Writes the shards of the odd tree as directories, and returns them with the tree's snapshot.
fn directories(folder: &Path, count: usize) -> (Vec<PathBuf>, Snapshot) {
    let (tree, contents) = odd_tree(16 << 10, true);
    let write = |(index, shard)| {
        let path = folder.join(format!("tree{index}"));
        std::fs::create_dir(&path).unwrap();
        write_dir(shard, &contents, &path);
        path
    };
    let shards = shards(&tree, count);
    (shards.iter().enumerate().map(write).collect(), snapshot_tree(&tree, &contents))
}

/// Returns the tree as directories hold it: sockets and the like as the host makes them.
fn expected(directories: &[PathBuf]) -> Snapshot {
    let mut all = Snapshot::default();
    for path in directories {
        for (name, row) in snapshot_dir(path).0 {
            all.0.insert(name, row);
        }
    }
    all
}

#[test]
fn images_by_mksquashfs_merge() {
    if !is_root() {
        return skip("device nodes need root");
    }
    let Some(tool) = peer("mksquashfs") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (directories, _) = directories(folder.path(), 3);
    for options in [
        &["-comp", "gzip"][..],
        &["-comp", "xz", "-Xbcj", "x86"],
        &["-comp", "zstd", "-always-use-fragments"],
        &["-no-fragments"],
    ] {
        let pack = |(index, from): (usize, &PathBuf)| {
            let to = folder.path().join(format!("{index}.sqfs"));
            let _ = std::fs::remove_file(&to);
            let mut arguments: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![from, &to];
            arguments
                .extend(["-noappend", "-no-progress", "-quiet", "-b", "16K"].iter().map(|word| word as _));
            arguments.extend(options.iter().map(|word| word as &dyn AsRef<std::ffi::OsStr>));
            tool.run(&arguments);
            to
        };
        let images: Vec<PathBuf> = directories.iter().enumerate().map(pack).collect();
        let (image, _) = merged(&images, folder.path());
        agrees_with(
            &image,
            "squashfs",
            &whole_seconds(expected(&directories)),
            &format!("mksquashfs {options:?}"),
        );
    }
}

/// SquashFS has no fractions of seconds.
fn whole_seconds(mut snapshot: Snapshot) -> Snapshot {
    snapshot.0.values_mut().for_each(|row| row.mtime.nanos = 0);
    snapshot
}

#[test]
fn images_by_mkfs_erofs_merge() {
    if !is_root() {
        return skip("device nodes need root");
    }
    let folder = tempfile::tempdir().unwrap();
    let (directories, _) = directories(folder.path(), 3);
    let cases = [
        ("1.5", &[][..]),
        ("1.5", &["-zlz4hc"]),
        ("1.5", &["-zlz4hc", "-C65536"]),
        ("1.5", &["-zlz4hc", "-Eztailpacking"]),
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
            let mut arguments: Vec<&dyn AsRef<std::ffi::OsStr>> =
                options.iter().map(|word| word as &dyn AsRef<std::ffi::OsStr>).collect();
            arguments.extend([&to as &dyn AsRef<std::ffi::OsStr>, from]);
            tool.run(&arguments);
            to
        };
        let images: Vec<PathBuf> = directories.iter().enumerate().map(pack).collect();
        let (image, _) = merged(&images, folder.path());
        agrees_with(&image, "erofs", &expected(&directories), &format!("mkfs.erofs {options:?}"));
    }
}

//! Objects as they are written: fs-verity, and blocks shared with the source.

use super::write_tree;
use packfs::composefs::{ComposefsOptions, Made, make};
use packfs::{ErrorKind, OpenOptions, Result, Silent};
use packfs_testkit::{Mount, is_root, peer, skip};
use std::fs::{File, OpenOptions as FileOptions};
use std::path::{Path, PathBuf};

fn made(root: &Path, objects: PathBuf, requires_fs_verity: bool) -> Result<Made> {
    // One thread, because two that meet equal files may write the object twice.
    let objects = Some(objects);
    let options = ComposefsOptions { objects, requires_fs_verity, jobs: 1, ..ComposefsOptions::default() };
    make(root, &options, &Silent)
}

/// Returns the paths of all objects.
fn objects(dir: &Path) -> Vec<PathBuf> {
    let below = |dir: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    below(dir).iter().flat_map(|folder| below(folder)).collect()
}

#[test]
fn fs_verity_is_enabled_where_it_can_be_or_has_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let (root, dir) = (folder.path().join("root"), folder.path().join("objects"));
    write_tree(&root);
    let counts = made(&root, dir.clone(), false).unwrap().report.objects.unwrap();
    assert!(counts.written > 0 && counts.files >= counts.written);
    assert_eq!(objects(&dir).len() as u64, counts.written);
    // A file with fs-verity cannot be opened for writing, not even by root.
    let sealed = |dir: &Path| {
        let is_sealed = |path: &&PathBuf| FileOptions::new().write(true).open(path).is_err();
        objects(dir).iter().filter(is_sealed).count() as u64
    };
    assert_eq!(sealed(&dir), counts.fs_verity);
    let required = made(&root, folder.path().join("others"), true);
    match counts.fs_verity {
        0 => {
            let error = required.err().unwrap();
            assert!(error.kind() == ErrorKind::Failed && error.to_string().contains("fs-verity"), "{error}");
            assert!(!error.hints().is_empty());
            // No object without it, nor a part of one, stays.
            assert!(objects(&folder.path().join("others")).is_empty());
            // Objects that were there are not enough.
            assert!(made(&root, dir, true).is_err());
        }
        count => {
            assert_eq!((count, required.unwrap().report.objects.unwrap()), (counts.written, counts));
            assert_eq!(made(&root, dir, true).unwrap().report.objects.unwrap().written, 0);
        }
    }
}

#[test]
fn objects_share_blocks_of_the_source_where_the_filesystem_can() {
    let Some(mkfs) = peer("mkfs.btrfs").filter(|_| is_root()) else {
        return skip("a filesystem that shares blocks needs root and mkfs.btrfs");
    };
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    File::create(&disk).unwrap().set_len(256 << 20).unwrap();
    mkfs.run(&[&"-q", &disk]);
    let mount = Mount::writable(&disk, "btrfs").unwrap();
    let (root, dir) = (mount.path().join("root"), mount.path().join("objects"));
    write_tree(&root);
    let Made { bytes, report, .. } = made(&root, dir.clone(), false).unwrap();
    let counts = report.objects.unwrap();
    assert_eq!((counts.shared, counts.written), (counts.written, objects(&dir).len() as u64));
    assert!(counts.shared > 0);
    // The same bytes as those that are copied, to another filesystem.
    let elsewhere = folder.path().join("objects");
    let copied = made(&root, elsewhere.clone(), false).unwrap();
    assert_eq!((copied.report.objects.unwrap().shared, copied.bytes == bytes), (0, true));
    for path in objects(&dir) {
        let other = elsewhere.join(path.strip_prefix(&dir).unwrap());
        assert!(std::fs::read(&path).unwrap() == std::fs::read(other).unwrap(), "{path:?}");
    }
    // The object stays as it is when its source changes.
    let path = root.join("usr/bin/65");
    let before = std::fs::read(&path).unwrap();
    std::fs::write(&path, "other").unwrap();
    let opened = OpenOptions::new().objects(&dir).open_bytes(bytes).unwrap();
    assert!(opened.read("usr/bin/65").unwrap() == before);
}

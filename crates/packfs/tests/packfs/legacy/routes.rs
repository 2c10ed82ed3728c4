//! The ways out of an image.

use packfs::mount::{FuseMount, FuseOptions};
use packfs_core::Silent;
use packfs_testkit::{Snapshot, snapshot_dir, snapshot_tree};
use std::path::Path;
use std::sync::Arc;

/// Listed, and every file read.
pub fn loaded(image: &Path) -> Snapshot {
    let opened = packfs::open(image).unwrap();
    let loaded = opened.load(&Silent).unwrap();
    snapshot_tree(&loaded.tree, &**opened.engine())
}

/// Unpacked into a directory.
pub fn unpacked(image: &Path, folder: &Path) -> Snapshot {
    let target = folder.join("unpacked");
    let report = packfs::open(image).unwrap().unpack(&target).unwrap();
    assert_eq!((report.not_created, report.not_restored.len()), (0, 0), "{:?}", report.not_restored);
    snapshot_dir(&target)
}

/// Mounted through FUSE.
pub fn fuse(image: &Path, folder: &Path) -> Snapshot {
    let at = folder.join("mount");
    std::fs::create_dir(&at).unwrap();
    let opened = packfs::open(image).unwrap();
    let options = FuseOptions::new(opened.volume().root(), image);
    let mount = FuseMount::new(Arc::clone(opened.engine()), &at, &options).unwrap();
    let snapshot = snapshot_dir(mount.at());
    drop(mount);
    snapshot
}

//! The ways out of an image.

use packfs::mount::{FuseMount, FuseOptions};
use packfs_core::Silent;
use packfs_source::{Shape, TarInput, load_tar};
use packfs_testkit::{Mount, Snapshot, snapshot_dir, snapshot_tree};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Mounted by the kernel.
pub fn kernel(image: &Path, _: &Path, format: &str) -> Snapshot {
    let mount = Mount::new(image, format).unwrap();
    snapshot_dir(&mount.path())
}

/// Mounted through FUSE.
pub fn fuse(image: &Path, folder: &Path, format: &str) -> Snapshot {
    let at = folder.join(format!("{format}.mount"));
    std::fs::create_dir(&at).unwrap();
    let opened = packfs::open(image).unwrap();
    let options = FuseOptions::new(opened.volume().root(), image);
    let mount = FuseMount::new(Arc::clone(opened.engine()), &at, &options).unwrap();
    let snapshot = snapshot_dir(mount.at());
    drop(mount);
    snapshot
}

/// Unpacked into a directory.
pub fn unpacked(image: &Path, folder: &Path, format: &str) -> Snapshot {
    let target = folder.join(format!("{format}.unpacked"));
    let report = packfs::open(image).unwrap().unpack(&target).unwrap();
    assert_eq!((report.not_created, report.not_restored.len()), (0, 0), "{:?}", report.not_restored);
    snapshot_dir(&target)
}

/// Writes a tar, and reads it as a source.
pub fn tar(image: &Path, folder: &Path, format: &str) -> Snapshot {
    let path = folder.join(format!("{format}.tar"));
    let mut out = File::create(&path).unwrap();
    packfs::open(image).unwrap().write_tar(&mut out).unwrap();
    let loaded = load_tar(TarInput::File(path.clone()), &Shape::default(), &Silent).unwrap();
    let snapshot = snapshot_tree(&loaded.tree, &*loaded.contents);
    std::fs::remove_file(path).unwrap();
    snapshot
}

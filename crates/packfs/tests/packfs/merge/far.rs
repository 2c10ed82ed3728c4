//! Shards with real metadata whose data is nearly all hole, and which are together longer than 32
//! bits address.
//!
//! Those of CI have blocks of 512 bytes, of which 2 TiB are enough. `PACKFS_FAR=3125` makes so many
//! shards of 32 GB with blocks of 4 KiB, in the folder `PACKFS_FAR_DIR`: 100 TB.

use super::far_shards::{Figures, Shard, erofs_shard, squash_shard};
use packfs::{DataPlace, ErrorKind, Limits, Merge, OpenOptions, Opened};
use packfs_testkit::{Mount, is_root, skip};
use std::path::{Path, PathBuf};

/// A folder for shards: one that is kept if the environment names it.
struct Folder {
    path: PathBuf,
    _own: Option<tempfile::TempDir>,
}

impl Folder {
    fn new() -> Self {
        match std::env::var_os("PACKFS_FAR_DIR") {
            Some(path) => Folder { path: path.into(), _own: None },
            None => {
                let own = tempfile::tempdir().unwrap();
                Folder { path: own.path().into(), _own: Some(own) }
            }
        }
    }
}

fn paths(shards: &[Shard]) -> Vec<&Path> {
    shards.iter().map(|shard| shard.path.as_path()).collect()
}

/// Files of more than 64 TiB are over the usual limit.
fn merge(images: &[&Path], output: &Path) -> Merge {
    packfs::merge(images, output).limits(Limits::none())
}

/// Some shards, the first and the last among them.
fn some(shards: &[Shard]) -> impl Iterator<Item = &Shard> {
    let step = (shards.len() / 50).max(1);
    shards.iter().step_by(step).chain(shards.last())
}

/// Reads files of known contents, and places of others, all of which are zeros.
#[track_caller]
fn reads_right(opened: &Opened, shards: &[Shard], what: &str) {
    for shard in some(shards) {
        for (name, bytes) in &shard.known {
            assert!(opened.read(name.as_str()).unwrap() == *bytes, "{what}: {name}");
        }
        let Some((name, len)) = &shard.hole else { continue };
        let file = opened.open_file(name.as_str()).unwrap();
        for at in [0, len / 3, len - 100] {
            let mut bytes = [1; 100];
            file.read_at(at, &mut bytes).unwrap();
            assert_eq!(bytes, [0; 100], "{what}: {name} at {at}");
        }
    }
}

/// The same through the kernel's mount.
#[track_caller]
fn mounts_right(mount: &Path, shards: &[Shard], what: &str) {
    for shard in some(shards) {
        for (name, bytes) in &shard.known {
            assert!(std::fs::read(mount.join(name)).unwrap() == *bytes, "{what}: {name}");
        }
        let Some((name, len)) = &shard.hole else { continue };
        let file = std::fs::File::open(mount.join(name)).unwrap();
        for at in [0, len / 3, len - 100] {
            let mut bytes = [1; 100];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, at).unwrap();
            assert_eq!(bytes, [0; 100], "{what}: {name} at {at}");
        }
    }
}

#[track_caller]
fn agrees(image: &Path, format: &str, shards: &[Shard], what: &str) {
    reads_right(&packfs::open(image).unwrap(), shards, what);
    if !is_root() {
        return skip("mounting needs root");
    }
    let mount = Mount::new(image, format).unwrap_or_else(|why| panic!("{what}: {why}"));
    mounts_right(&mount.path(), shards, what);
}

#[test]
fn erofs_shards_of_more_than_32_bits_of_blocks_merge_for_a_kernel_that_is_named() {
    let (folder, figures) = (Folder::new(), Figures::erofs());
    let shards: Vec<Shard> =
        (0..figures.count).map(|index| erofs_shard(index, &figures, &folder.path)).collect();
    let inputs = paths(&shards);
    let output = folder.path.join("merged.erofs");
    let narrow: Vec<&Path> = inputs.iter().copied().skip(1).step_by(2).collect();
    if figures.count < 100 {
        // Without a name, the image would need a newer kernel than the shards.
        let error = packfs::merge(&narrow, &output).run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(format!("{error:#}{:?}", error.hints()).contains("--kernel 6.15"), "{error}");
        packfs::merge(&narrow, &output).kernel("6.18").run().unwrap();
        let own: Vec<Shard> = shards.iter().skip(1).step_by(2).cloned().collect();
        agrees(&output, "erofs", &own, "shards with 32-bit addresses in one file");
    }
    for place in [DataPlace::Image, DataPlace::Flat] {
        let merged = merge(&inputs, &output).kernel("6.18").data(place).run().unwrap();
        assert!(merged.report.image_size > figures.block_len() << 32, "{merged:?}");
        agrees(&output, "erofs", &shards, &format!("{place:?}"));
        std::fs::remove_file(&output).unwrap();
    }
    devices_need_a_newer_kernel(&shards, &inputs, &output);
}

/// Kernels before 7.1 read the lower 32 bits of a device's start.
fn devices_need_a_newer_kernel(shards: &[Shard], inputs: &[&Path], output: &Path) {
    let merge = merge(inputs, output).data(DataPlace::Inputs);
    let error = merge.clone().kernel("6.18").run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("2^32 blocks"), "{error}");
    merge.kernel("7.1").run().unwrap();
    let options = inputs.iter().fold(OpenOptions::new(), OpenOptions::device);
    reads_right(&options.open(output).unwrap(), shards, "devices");
}

#[test]
fn squashfs_shards_of_many_gigabytes_merge() {
    let (folder, figures) = (Folder::new(), Figures::squashfs());
    let shards: Vec<Shard> =
        (0..figures.count).map(|index| squash_shard(index, &figures, &folder.path)).collect();
    let output = folder.path.join("merged.sqfs");
    let merged = merge(&paths(&shards), &output).run().unwrap();
    assert!(merged.report.image_size > 1 << 33, "{merged:?}");
    assert!(merged.read_bytes < 1 << 33, "{merged:?}");
    agrees(&output, "squashfs", &shards, "squashfs");
    std::fs::remove_file(&output).unwrap();
}

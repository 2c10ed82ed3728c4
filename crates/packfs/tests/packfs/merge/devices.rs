//! Merged EROFS images whose data stays in the inputs, or that hold the inputs whole.

use super::shards::{agrees, packed};
use crate::common::Wish;
use packfs::{DataPlace, OpenOptions, Silent, Tree};
use packfs_core::Held;
use packfs_testkit::{Compare, Mount, is_root, odd_tree, skip, snapshot_dir, snapshot_tree};
use std::path::{Path, PathBuf};

/// Shards whose tails end in a block of the data.
const WISH: Wish<'_> =
    Wish { codec: "lz4hc", block_len: 16 << 10, options: &[("fragments", "tails")], jobs: 2 };

fn shards(folder: &Path, count: usize) -> (Tree, Held, Vec<PathBuf>) {
    let (tree, contents) = odd_tree(16 << 10, true);
    let images = packed("erofs", &tree, &contents, WISH, count, folder);
    (tree, contents, images)
}

/// Returns the first block of each device in the address space of an image.
fn device_starts(image: &[u8]) -> Vec<u64> {
    let number = |at: usize, len: usize| {
        image[at..at + len].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let (count, slot) = (number(1024 + 86, 2), number(1024 + 88, 2) as usize * 128);
    (0..count as usize).map(|index| number(slot + index * 128 + 68, 4)).collect()
}

#[test]
fn a_flat_image_is_the_image_of_devices_and_the_inputs_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents, images) = shards(folder.path(), 3);
    let (flat, index) = (folder.path().join("flat.erofs"), folder.path().join("index.erofs"));
    packfs::merge(&images, &flat).data(DataPlace::Flat).run().unwrap();
    packfs::merge(&images, &index).data(DataPlace::Inputs).run().unwrap();
    agrees(&flat, "erofs", &tree, &contents, "a flat image");
    let (flat, index) = (std::fs::read(flat).unwrap(), std::fs::read(index).unwrap());
    let mut at = index.len();
    for image in images {
        let bytes = std::fs::read(image).unwrap();
        assert_eq!(&flat[at..at + bytes.len()], bytes);
        at += bytes.len().next_multiple_of(4096);
    }
    assert_eq!(at, flat.len());
    // Only the superblock differs: it counts the blocks of the whole file.
    assert_eq!(flat[4096..index.len()], index[4096..]);
}

#[test]
fn an_image_reads_its_data_from_the_inputs_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents, images) = shards(folder.path(), 3);
    let before: Vec<Vec<u8>> = images.iter().map(|image| std::fs::read(image).unwrap()).collect();
    let index = folder.path().join("index.erofs");
    let merged = packfs::merge(&images, &index).data(DataPlace::Inputs).run().unwrap();
    assert_eq!(merged.report.moved_bytes, 0);
    let expected = snapshot_tree(&tree, &contents);
    let options = images.iter().fold(OpenOptions::new(), OpenOptions::device);
    let opened = options.open(&index).unwrap();
    let loaded = opened.load(&Silent).unwrap();
    let found = snapshot_tree(&loaded.tree, &**opened.engine());
    expected.assert_same(&found, Compare::default(), "read by packfs");
    // Blocks of directories lie outside of every device.
    let mut findings = Vec::new();
    opened.volume().check(&mut |finding| findings.push(finding)).unwrap();
    findings.retain(|finding| finding.severity > packfs::Severity::Note);
    assert!(findings.is_empty(), "{findings:?}");
    let bytes = std::fs::read(&index).unwrap();
    let starts = device_starts(&bytes);
    assert_eq!(starts.len(), 3);
    assert!(starts.iter().all(|start| start * 4096 >= bytes.len() as u64), "{starts:?}");
    for (image, before) in images.iter().zip(before) {
        assert!(std::fs::read(image).unwrap() == before);
    }
    if !is_root() {
        return skip("mounting needs root");
    }
    let devices: Vec<&Path> = images.iter().map(PathBuf::as_path).collect();
    let mount = Mount::with_devices(&index, "erofs", &devices).unwrap();
    expected.assert_same(&snapshot_dir(&mount.path()), Compare::default(), "mounted with devices");
}

//! Single flipped bits in structures that have checksums: what is read is the same, or the user is
//! told.

use super::manifest::{Manifest, manifests};
use packfs::{OpenOptions, Result};
use packfs_core::Silent;
use packfs_testkit::{Random, Snapshot, snapshot_tree};
use std::ops::Range;

/// Flips of each image; `PACKFS_FLIPS` changes the number, and `PACKFS_SEED` the places.
const FLIPS: u64 = 150;
/// Images whose structures all have checksums, and the owners of bytes that have none there.
const SUMMED: [(&str, &[&str]); 9] = [
    ("xfs-v5", &["file data"]),
    ("xfs-log", &["file data"]),
    ("ext4", &["file data", "link targets"]),
    ("ext4-inline", &["file data", "link targets"]),
    ("ext4-journal", &["file data", "link targets"]),
    ("btrfs-dup", &[]),
    ("btrfs-mixed", &[]),
    ("romfs", &["file data", "link targets"]),
    ("romfs-patterns", &["file data", "link targets"]),
];

/// All that is read of an image, and the warnings.
fn read(bytes: Vec<u8>) -> Result<(Snapshot, Vec<String>)> {
    let opened = OpenOptions::new().jobs(1).open_bytes(bytes)?;
    let loaded = opened.load(&Silent)?;
    let mut fault = None;
    packfs::check::content(opened.engine(), &loaded, &Silent, &mut |finding| {
        fault.get_or_insert(finding.fault);
    })?;
    match fault {
        Some(fault) => Err(packfs::Error::failed(fault)),
        None => {
            let snapshot = snapshot_tree(&loaded.tree, &**opened.engine());
            Ok((snapshot, [opened.warnings(), opened.volume().remarks()].concat()))
        }
    }
}

/// The bytes of an image that structures with checksums take.
fn summed(bytes: &[u8], without: &[&str]) -> Vec<Range<u64>> {
    let opened = packfs::open_bytes(bytes.to_vec()).unwrap();
    let owners = opened.volume().space().unwrap();
    let is_summed =
        |owner: &str| !without.contains(&owner) && !["free", "padding", "unused"].contains(&owner);
    owners.iter().filter(|row| is_summed(row.owner)).map(|row| row.offset..row.offset + row.len).collect()
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn flip(manifest: &Manifest, without: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let image = std::fs::read(manifest.unpacked_image(folder.path())).unwrap();
    let (whole, warnings) = read(image.clone()).unwrap();
    let ranges = summed(&image, without);
    let total: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    let mut random = Random::new(setting("PACKFS_SEED", 1));
    let mut silent = Vec::new();
    for _ in 0..setting("PACKFS_FLIPS", FLIPS) {
        let (mut left, bit) = (random.below(total), random.below(8));
        let range = ranges.iter().find(|range| {
            let len = range.end - range.start;
            let is_there = left < len;
            left = if is_there { left } else { left - len };
            is_there
        });
        let at = (range.unwrap().start + left) as usize;
        let mut bytes = image.clone();
        bytes[at] ^= 1 << bit;
        if let Ok((found, told)) = read(bytes)
            && found.0 != whole.0
            && told == warnings
        {
            silent.push(format!("{}: bit {bit} of byte {at:#x}", manifest.name));
        }
    }
    silent
}

#[test]
fn no_flipped_bit_that_a_checksum_covers_changes_what_is_read_without_a_word() {
    let manifests = manifests();
    let silent: Vec<String> = SUMMED
        .iter()
        .flat_map(|(name, without)| flip(manifests.iter().find(|it| it.name == *name).unwrap(), without))
        .collect();
    assert!(silent.is_empty(), "{silent:#?}");
}

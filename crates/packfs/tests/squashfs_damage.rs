//! The damage matrix: whatever is done to whichever structure of an image, it is opened, listed, checked, decoded and
//! unpacked without a panic, without anything outside of the target, and with an error that says what is wrong.

mod common;

use common::{Wish, squash};
use packfs_core::{ErrorKind, Finding, Image, Result, Severity, Silent, SpaceOwner, Volume};
use packfs_image::MemoryImage;
use packfs_read::{Limits, ReadEngine, ReadOptions};
use packfs_sink::{UnpackOptions, unpack};
use packfs_testkit::{Action, Damage, damages, is_root, odd_tree, plain_tree};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

fn open(bytes: Vec<u8>) -> Result<Arc<ReadEngine>> {
    let image: Arc<dyn Image> = Arc::new(MemoryImage::new("damaged image", bytes));
    let format = packfs_formats::by_name("squashfs").unwrap();
    let volume: Arc<dyn Volume> = format.open(Arc::clone(&image))?.into();
    let limits = Limits { entries_max: 100_000, depth_max: 1000 };
    Ok(ReadEngine::new(image, volume, ReadOptions { jobs: 2, cache_bytes: 1 << 20, limits }))
}

/// What became of a damaged image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Refused,
    /// Opened, but something in it is wrong.
    Found,
    /// Nothing shows: without checksums some damage cannot be seen.
    Unseen,
}

fn judge(damage: &Damage, target: Option<&Path>) -> Verdict {
    let what = format!("{:?} in {} at {:#x}", damage.action, damage.owner, damage.offset);
    let of_the_image =
        |kind: ErrorKind| matches!(kind, ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Failed);
    let engine = match open(damage.image.clone()) {
        Ok(engine) => engine,
        Err(error) => {
            assert!(of_the_image(error.kind()), "{what}: {error}");
            return Verdict::Refused;
        }
    };
    let mut worst = None;
    let mut found = |finding: Finding| worst = worst.max(Some(finding.severity));
    let checked = engine.volume().check(&mut found);
    let loaded = match engine.load_tree(&Silent) {
        Ok(loaded) => loaded,
        Err(error) => {
            assert!(of_the_image(error.kind()), "{what}: {error}");
            return Verdict::Found;
        }
    };
    let decoded = packfs_check::content(&engine, &loaded, &Silent, &mut found);
    assert!(decoded.is_ok(), "{what}: {decoded:?}");
    let _ = engine.volume().space();
    let _ = engine.volume().facts();
    let unpacked = target.map(|target| unpack(&engine, &loaded, target, &UnpackOptions::default(), &Silent));
    if checked.is_err() || worst >= Some(Severity::Error) || matches!(unpacked, Some(Err(_))) {
        Verdict::Found
    } else {
        Verdict::Unseen
    }
}

fn survives(image: &[u8], each: u64, unpacking: bool, what: &str) {
    let space: Vec<SpaceOwner> = open(image.to_vec()).unwrap().volume().space().unwrap();
    assert_eq!(space.iter().map(|owner| owner.len).sum::<u64>(), image.len() as u64, "{what}");
    let folder = tempfile::tempdir().unwrap();
    let sentinel = folder.path().join("sentinel");
    std::fs::write(&sentinel, "untouched").unwrap();
    let mut verdicts: BTreeMap<(&str, String, Verdict), u64> = BTreeMap::new();
    for damage in damages(image, &space, each) {
        let target = folder.path().join("target");
        let verdict = judge(&damage, unpacking.then_some(&target));
        *verdicts.entry((damage.owner, format!("{:?}", damage.action), verdict)).or_default() += 1;
        let cut = damage.action == Action::Truncate && !matches!(damage.owner, "padding" | "unused");
        assert!(
            !cut || verdict != Verdict::Unseen,
            "{what}: cut in {} at {:#x}",
            damage.owner,
            damage.offset
        );
        let names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.iter().all(|name| name == "sentinel" || name == "target"), "{what}: {names:?}");
        if target.exists() {
            std::fs::remove_dir_all(&target).unwrap();
        }
    }
    assert_eq!(std::fs::read(&sentinel).unwrap(), b"untouched");
    let seen: u64 =
        verdicts.iter().filter(|((_, _, v), _)| *v != Verdict::Unseen).map(|(_, count)| count).sum();
    let total: u64 = verdicts.values().sum();
    // Changes of contents, owners, modes and times that are stored as they are cannot be seen; compressed ones must be.
    let seen_min = if unpacking { total / 2 } else { total / 4 };
    assert!(seen > seen_min, "{what}: only {seen} of {total} seen: {verdicts:#?}");
}

#[test]
fn damage_to_any_structure_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = plain_tree();
    for (codec, options) in [
        ("gzip", &[][..]),
        ("zstd:3", &[("fragments", "always")]),
        ("xz", &[("uncompressed", "inodes,ids")]),
        ("lz4", &[("uncompressed", "xattrs,fragments")]),
    ] {
        let wish = Wish { codec, block_len: 64 << 10, options, ..Wish::default() };
        let image = std::fs::read(squash(&tree, &contents, wish, folder.path(), "image")).unwrap();
        survives(&image, 6, true, codec);
    }
}

#[test]
fn damage_to_odd_things_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(4096, is_root());
    // Uncompressed metadata lets damage reach every field, not only the codec.
    let wish = Wish { codec: "gzip", options: &[("uncompressed", "all")], ..Wish::default() };
    let image = std::fs::read(squash(&tree, &contents, wish, folder.path(), "image")).unwrap();
    survives(&image, 4, false, "odd tree");
}

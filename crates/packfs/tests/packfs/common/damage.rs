//! The damage matrix: whatever is done to whichever structure of an image, it is opened, listed,
//! checked, decoded and unpacked without a panic, without anything outside of the target, and with
//! an error that says what is wrong.

use super::engine;
use packfs_core::{ErrorKind, Limit, Limits, MemoryImage, Result, Silent};
use packfs_format::{Finding, Severity, SpaceOwner};
use packfs_read::{ReadEngine, ReadOptions};
use packfs_sink::{UnpackOptions, unpack};
use packfs_testkit::{Action, Damage, damages};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

fn open(bytes: Vec<u8>) -> Result<Arc<ReadEngine>> {
    let limits = Limits::default().allow(Limit::Entries, 100_000).allow(Limit::Depth, 1000);
    let options = ReadOptions { jobs: 2, cache_bytes: 1 << 20, limits, ..ReadOptions::default() };
    engine(Arc::new(MemoryImage::new("damaged image", bytes)), options)
}

/// Outcome of reading a damaged image.
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
    let of_the_image = |kind: ErrorKind| {
        matches!(kind, ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Failed | ErrorKind::Limit)
    };
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

/// Places of one owner that are damaged: formats that mix inodes and data have thousands of them.
const PLACES_PER_OWNER: usize = 8;

/// Places of every owner, evenly taken, the first and the last among them.
fn sample(space: Vec<SpaceOwner>) -> Vec<SpaceOwner> {
    let mut by_owner: BTreeMap<&str, Vec<SpaceOwner>> = BTreeMap::new();
    for place in space {
        by_owner.entry(place.owner).or_default().push(place);
    }
    let taken = by_owner.into_values().flat_map(|places| {
        let last = places.len() - 1;
        let count = places.len().min(PLACES_PER_OWNER);
        let index = move |nth: usize| if count == 1 { 0 } else { nth * last / (count - 1) };
        (0..count).map(|nth| places[index(nth)].clone()).collect::<Vec<_>>()
    });
    taken.collect()
}

/// Damages every structure of an image in every way, `each` times, and looks at what becomes of it.
#[track_caller]
pub fn survives(image: &[u8], each: u64, unpacking: bool, what: &str) {
    let space: Vec<SpaceOwner> = open(image.to_vec()).unwrap().volume().space().unwrap();
    assert_eq!(space.iter().map(|owner| owner.len).sum::<u64>(), image.len() as u64, "{what}");
    let folder = tempfile::tempdir().unwrap();
    let sentinel = folder.path().join("sentinel");
    std::fs::write(&sentinel, "untouched").unwrap();
    let mut verdicts: BTreeMap<(&str, String, Verdict), u64> = BTreeMap::new();
    for damage in damages(image, &sample(space), each) {
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
    // Changes of contents, owners, modes and times that are stored as they are cannot be seen;
    // compressed ones must be.
    let seen_min = if unpacking { total / 2 } else { total / 4 };
    assert!(seen > seen_min, "{what}: only {seen} of {total} seen: {verdicts:#?}");
}

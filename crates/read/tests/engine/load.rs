//! Loading a whole volume as a tree.

use crate::made_up::{FILE, SyntheticVolume};
use packfs_core::{ErrorKind, FileType, ImagePath, Limit, Limits, Result, Silent};
use packfs_format::{DirEntry, InodeId};
use packfs_read::{LoadedVolume, ReadEngine, ReadOptions};
use packfs_testkit::MadeUpImage;
use std::sync::Arc;

fn dir(name: &str, id: u64) -> DirEntry {
    DirEntry { name: name.into(), id: InodeId(id), file_type: FileType::Directory }
}

fn load(dirs: Vec<Vec<DirEntry>>, limits: Limits) -> Result<u32> {
    let loaded = load_volume(SyntheticVolume { dirs, files: Vec::new() }, limits)?;
    Ok(loaded.tree.node_count())
}

fn load_volume(volume: SyntheticVolume, limits: Limits) -> Result<LoadedVolume> {
    let options = ReadOptions { limits, ..ReadOptions::default() };
    ReadEngine::new(Arc::new(MadeUpImage::default()), Arc::new(volume.volume()), options).load_tree(&Silent)
}

#[test]
fn refuses_directories_that_are_reached_twice() {
    for (what, dirs) in [
        ("a circle", vec![vec![dir("a", 1)], vec![dir("b", 0)]]),
        ("itself", vec![vec![dir("a", 0)]]),
        ("a diamond", vec![vec![dir("a", 1), dir("b", 1)], vec![]]),
    ] {
        let error = load(dirs, Limits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("reached before"), "{what}: {error}");
    }
}

#[test]
fn refuses_names_that_stand_twice_or_lead_elsewhere() {
    let error =
        load(vec![vec![dir("a", 1), dir("b", 2), dir("a", 3)], vec![], vec![], vec![]], Limits::default());
    assert!(error.unwrap_err().to_string().contains("stands twice"));
    for name in ["..", ".", "a/b", "", "a\0b"] {
        let error = load(vec![vec![dir(name, 1)], vec![]], Limits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}: {error}");
    }
}

#[test]
fn loads_10_000_levels_and_stops_at_the_limits() {
    let levels = |count: u64| (1..=count).map(|id| vec![dir("d", id)]).chain([vec![]]).collect::<Vec<_>>();
    assert_eq!(load(levels(10_000), Limits::default()).unwrap(), 10_001);
    for (limit, found) in [
        (Limit::Depth, "11 directories within each other"),
        (Limit::Entries, "11 names"),
        (Limit::Memory, "of memory"),
    ] {
        let limits = Limits::default().allow(limit, 10);
        let error = load(levels(12), limits).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(error.to_string().contains(found), "{error}");
    }
    assert!(load(levels(10), Limits::default().allow(Limit::Depth, 10)).is_ok());
}

#[test]
fn refuses_2_to_the_40_paths_at_once() {
    let levels = (1..=40).map(|id| vec![dir("a", id), dir("b", id)]).chain([vec![]]).collect();
    let error = load(levels, Limits::default().allow(Limit::Entries, 100)).unwrap_err();
    assert!(error.to_string().contains("reached before"), "{error}");
}

#[test]
fn names_of_one_inode_are_hard_links_to_one_node() {
    let file = |name: &str| DirEntry { file_type: FileType::File, ..dir(name, FILE) };
    let dirs = vec![vec![file("z"), dir("d", 1), file("a")], vec![file("m")]];
    let loaded = load_volume(SyntheticVolume { dirs, files: vec![vec![]] }, Limits::default()).unwrap();
    let find = |path: &[u8]| loaded.tree.find(&ImagePath::parse(path).unwrap()).unwrap();
    let node = find(b"a");
    assert!(node == find(b"d/m") && node == find(b"z"));
    assert_eq!(loaded.tree.node(node).links, 3);
    assert_eq!(loaded.inodes[node.index()], InodeId(FILE));
    assert_eq!(loaded.inodes[find(b"d").index()], InodeId(1));
}

#[test]
fn errors_name_the_path() {
    for (dirs, place) in [
        (vec![vec![dir("a", 1)], vec![dir("b", 2)], vec![dir("c", 1)]], "\"a/b/c\": "),
        (vec![vec![dir("a", 1)], vec![dir("..", 2)], vec![]], "\"a\": "),
        (vec![vec![dir("a/b", 1)], vec![]], "\"/\": "),
    ] {
        let error = load(dirs, Limits::default()).unwrap_err().to_string();
        assert!(error.starts_with(place), "{error}");
    }
}

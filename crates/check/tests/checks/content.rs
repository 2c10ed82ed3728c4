//! Decoding of all contents.

use packfs_check::{ContentReport, content};
use packfs_codec::Algorithm;
use packfs_codec::BlockRef;
use packfs_core::{ErrorKind, FileType, Progress, Silent};
use packfs_format::{DirEntry, Extent, ExtentFrom, InodeId, Severity};
use packfs_read::{LoadedVolume, ReadEngine, ReadOptions};
use packfs_testkit::{MadeUpImage, MadeUpNode, MadeUpVolume};
use std::sync::Arc;

/// Returns one directory of files with one extent each, over 1000 bytes that are all `x`; entries
/// are names and indices of files.
fn loaded(
    entries: Vec<(&'static str, u64)>,
    files: Vec<Extent>,
    jobs: usize,
) -> (Arc<ReadEngine>, LoadedVolume) {
    let options = ReadOptions { jobs, ..ReadOptions::default() };
    let file_id = |index: u64| InodeId(1 + index);
    let entry = |(name, file): (&str, u64)| DirEntry {
        name: name.into(),
        id: file_id(file),
        file_type: FileType::File,
    };
    let root = (InodeId(0), MadeUpNode::dir(InodeId(0), entries.into_iter().map(entry).collect()));
    let files = (0..).map(file_id).zip(files).map(|(id, extent)| (id, MadeUpNode::file(id, vec![extent])));
    let volume: MadeUpVolume = std::iter::once(root).chain(files).collect();
    let engine = ReadEngine::new(Arc::new(MadeUpImage::new(vec![b'x'; 1000])), Arc::new(volume), options);
    let loaded = engine.load_tree(&Silent).unwrap();
    (engine, loaded)
}

fn extent(len: u64, from: ExtentFrom) -> Extent {
    Extent { offset: 0, len, from }
}

/// Returns a part of a block that is not gzip data.
fn damaged(len: u64) -> Extent {
    let algorithm = Some(Algorithm::Zlib);
    let block = BlockRef { decoded_len: 4096, algorithm, ..BlockRef::stored(500, 100) };
    extent(len, ExtentFrom::Block { block, start: 0 })
}

#[test]
fn every_damaged_file_is_found_and_all_others_are_decoded() {
    let files = vec![
        extent(100, ExtentFrom::Stored(0)),
        damaged(10),
        extent(1 << 40, ExtentFrom::Hole),
        extent(10, ExtentFrom::Stored(995)),
        damaged(20),
    ];
    let entries =
        vec![("sound", 0), ("damaged", 1), ("hole", 2), ("cut off", 3), ("link", 4), ("also", 4), ("z", 4)];
    for jobs in [1, 2, 16] {
        let (engine, loaded) = loaded(entries.clone(), files.clone(), jobs);
        let mut found = Vec::new();
        let report = content(&engine, &loaded, &Silent, &mut |finding| found.push(finding)).unwrap();
        let ContentReport { files, file_bytes, damaged_files, unverifiable_bytes, .. } = report;
        assert_eq!((files, file_bytes, damaged_files, unverifiable_bytes), (5, 140 + (1 << 40), 3, 110));
        assert!(found.iter().all(|finding| finding.severity == Severity::Error));
        let places: Vec<_> = found.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(places, ["\"also\" and 2 other names", "\"cut off\"", "\"damaged\""]);
        assert!(found[0].fault.contains("block at 0x1f4: gzip data of 100 bytes"), "{}", found[0].fault);
        assert!(found[1].fault.contains("image ends at 0x3e8"), "{}", found[1].fault);
    }
}

#[test]
fn an_image_without_files_is_sound() {
    let (engine, loaded) = loaded(Vec::new(), Vec::new(), 2);
    let report = content(&engine, &loaded, &Silent, &mut |finding| panic!("{finding:?}")).unwrap();
    assert_eq!(report, ContentReport::default());
}

#[test]
fn stops_when_cancelled() {
    struct Stop;
    impl Progress for Stop {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let (engine, loaded) = loaded(vec![("a", 0)], vec![extent(100, ExtentFrom::Stored(0))], 2);
    let error = content(&engine, &loaded, &Stop, &mut |_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

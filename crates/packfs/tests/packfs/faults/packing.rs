//! Packing from sources that fail.

use super::{FORMATS, open, tree};
use packfs_core::FileImage;
use packfs_core::{ErrorKind, FileType, Silent, Tree};
use packfs_format::{PackFormat, PackSettings};
use packfs_pack::{PackOptions, PackReport, pack};
use packfs_testkit::{Compare, Countdown, FaultyContents, FaultyImage, ReadFault, Snapshot, snapshot_tree};
use std::path::Path;
use std::sync::Arc;

/// More calls than any run makes.
const CALLS_MAX: u64 = 5000;

fn packer(format: &str, codec: &str) -> Box<dyn PackFormat> {
    let settings = PackSettings { codec: Some(codec.into()), ..PackSettings::default() };
    packfs_formats::by_name(format).unwrap().packer(&settings).unwrap()
}

fn pack_from(
    tree: &Tree,
    contents: &dyn packfs_core::Contents,
    packer: &dyn PackFormat,
    output: &Path,
    keep_going: bool,
) -> packfs_core::Result<PackReport> {
    let options = PackOptions { jobs: 1, sync: false, keep_going, ..PackOptions::default() };
    pack(tree, contents, packer, output, &options, &Silent)
}

fn read(path: &Path) -> Snapshot {
    let engine = open(Arc::new(FileImage::open(path).unwrap())).unwrap();
    let loaded = engine.load_tree(&Silent).unwrap();
    snapshot_tree(&loaded.tree, &*engine)
}

#[test]
fn a_source_that_fails_at_any_call_gives_no_image_or_the_right_one() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("image");
    let (tree, held) = tree();
    let right = snapshot_tree(&tree, &held);
    for (format, codec) in FORMATS {
        let packer = packer(format, codec);
        let mut refused = 0;
        for call in 0..CALLS_MAX {
            let countdown = Countdown::new(call, 1);
            let contents = FaultyContents::new(&held, Arc::clone(&countdown));
            std::fs::write(&output, "old").unwrap();
            match pack_from(&tree, &contents, &*packer, &output, false) {
                Ok(_) => {
                    assert!(!countdown.has_failed(), "{format} {call}: nobody heard of it");
                    right.assert_same(&read(&output), Compare::default(), &format!("{format} {call}"));
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Io, "{format} {call}: {error}");
                    assert_eq!(std::fs::read(&output).unwrap(), b"old", "{format} {call}");
                    refused += 1;
                }
            }
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "{format} {call}");
            if !countdown.has_failed() {
                break;
            }
            assert!(call + 1 < CALLS_MAX, "{format}: reads without end");
        }
        assert!(refused > 10, "{format}: {refused}");
    }
}

#[test]
fn files_stored_empty_are_reported_and_all_others_correct() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("image");
    let (tree, held) = tree();
    let right = snapshot_tree(&tree, &held);
    for (format, codec) in FORMATS {
        let packer = packer(format, codec);
        for call in 0..CALLS_MAX {
            let countdown = Countdown::new(call, 1);
            let contents = FaultyContents::new(&held, Arc::clone(&countdown));
            let report = pack_from(&tree, &contents, &*packer, &output, true).unwrap();
            let mut there = read(&output);
            let mut empty = 0;
            for (path, row) in &mut there.0 {
                if row.file_type == FileType::File && row.len == 0 {
                    *row = right.0[path].clone();
                    empty += 1;
                }
            }
            // A duplicate is stored empty with its original.
            assert!(empty <= 2 * report.skipped.len(), "{format} {call}: {empty} {:?}", report.skipped);
            assert!(empty >= report.skipped.len(), "{format} {call}: {empty} {:?}", report.skipped);
            right.assert_same(&there, Compare::default(), &format!("{format} {call}"));
            if !countdown.has_failed() {
                assert_eq!(empty, 0);
                break;
            }
        }
    }
}

#[test]
fn an_image_that_fails_at_any_read_is_not_made_into_a_wrong_one() {
    let folder = tempfile::tempdir().unwrap();
    let (first, output) = (folder.path().join("first"), folder.path().join("image"));
    let (tree, held) = tree();
    let right = snapshot_tree(&tree, &held);
    for (format, codec) in FORMATS {
        let packer = packer(format, codec);
        pack_from(&tree, &held, &*packer, &first, false).unwrap();
        let bytes: Arc<dyn packfs_core::Image> = Arc::new(FileImage::open(&first).unwrap());
        for fault in [ReadFault::Error, ReadFault::Short] {
            for call in 0..CALLS_MAX {
                let what = format!("{format} {fault:?} {call}");
                let countdown = Countdown::new(call, 1);
                let image = FaultyImage::new(Arc::clone(&bytes), fault, Arc::clone(&countdown));
                let _ = std::fs::remove_file(&output);
                let packed = open(image).and_then(|engine| {
                    let loaded = engine.load_tree(&Silent)?;
                    pack_from(&loaded.tree, &*engine, &*packer, &output, false)
                });
                match packed {
                    Ok(_) => right.assert_same(&read(&output), Compare::default(), &what),
                    Err(error) => {
                        let kinds = [ErrorKind::Io, ErrorKind::Corrupt, ErrorKind::Unsupported];
                        assert!(kinds.contains(&error.kind()), "{what}: {error}");
                        assert!(
                            fault == ReadFault::Short || error.kind() == ErrorKind::Io,
                            "{what}: {error}"
                        );
                        assert!(!output.exists(), "{what}");
                    }
                }
                if !countdown.has_failed() {
                    break;
                }
            }
        }
    }
}

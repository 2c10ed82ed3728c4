//! Damaged images: refused or merged, never a panic.

use crate::common::{Wish, erofs, squash};
use packfs::ErrorKind;
use packfs_testkit::{Random, plain_tree};
use std::path::Path;

/// Merges an intact image with damaged copies of another.
fn merge_damaged(intact: &Path, victim: &Path, metadata_from: usize) {
    let folder = tempfile::tempdir().unwrap();
    let (copy, output) = (folder.path().join("copy"), folder.path().join("merged"));
    let bytes = std::fs::read(victim).unwrap();
    let mut random = Random::new(7);
    let mut refused = 0;
    for _ in 0..300 {
        let mut damaged = bytes.clone();
        for _ in 0..=random.below(3) {
            let from = if random.below(2) == 0 { 0 } else { metadata_from };
            let end = if from == 0 { 2048 } else { bytes.len() };
            let at = from + random.below((end - from) as u64) as usize;
            damaged[at] = random.next() as u8;
        }
        std::fs::write(&copy, damaged).unwrap();
        match packfs::merge([intact, &copy], &output).at("x", &copy).unwrap().run() {
            Ok(_) => std::fs::remove_file(&output).unwrap(),
            Err(error) => {
                refused += 1;
                let expected = [
                    ErrorKind::Corrupt,
                    ErrorKind::Unsupported,
                    ErrorKind::Usage,
                    ErrorKind::Failed,
                    ErrorKind::Limit,
                ];
                assert!(expected.contains(&error.kind()), "{:?}: {error}", error.kind());
                assert!(!output.exists());
            }
        }
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn damaged_images_are_refused_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = plain_tree();
    let empty = packfs::TreeBuilder::new(packfs::Meta::default()).finish().unwrap();
    let wish = Wish { codec: "zstd:1", ..Wish::default() };
    let victim = squash(&tree, &contents, wish, folder.path(), "victim");
    let len = std::fs::metadata(&victim).unwrap().len() as usize;
    let intact = squash(&empty, &contents, wish, folder.path(), "intact");
    merge_damaged(&intact, &victim, len - 8192);
    let wish = Wish { codec: "lz4", block_len: 16 << 10, ..Wish::default() };
    let victim = erofs(&tree, &contents, wish, folder.path(), "victim");
    let len = std::fs::metadata(&victim).unwrap().len() as usize;
    let intact = erofs(&empty, &contents, wish, folder.path(), "intact");
    merge_damaged(&intact, &victim, len - (16 << 10));
}

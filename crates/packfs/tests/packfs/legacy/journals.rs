//! Journals with damage: what is read is whole, or the user is told.

use super::manifest::folder;
use packfs::OpenOptions;
use packfs_core::{ErrorKind, Result, Silent};
use packfs_testkit::{Snapshot, assert_refused, snapshot_tree};

const BLOCK_LEN: usize = 1024;
/// Descriptor and commit of the only transaction, and the first fast commit.
const DESCRIPTOR: usize = 18;
const COMMIT: usize = 29;
const FAST_COMMIT: usize = 1055;

/// An image of ext4 with a transaction and a fast commit in its journal.
fn image() -> Vec<u8> {
    zstd::decode_all(std::fs::File::open(folder().join("ext4-journal.ext4.zst")).unwrap()).unwrap()
}

fn with(at: usize, change: impl Fn(u8) -> u8) -> Vec<u8> {
    let mut bytes = image();
    bytes[at] = change(bytes[at]);
    bytes
}

fn read(bytes: Vec<u8>) -> Result<(Snapshot, Vec<String>)> {
    let opened = packfs::open_bytes(bytes)?;
    let loaded = opened.load(&Silent)?;
    Ok((snapshot_tree(&loaded.tree, &**opened.engine()), opened.warnings()))
}

#[test]
fn a_block_of_a_journal_that_is_not_the_next_one_any_more_is_an_error() {
    for block in [DESCRIPTOR, COMMIT] {
        for at in [0, 7, 11] {
            let damaged = with(block * BLOCK_LEN + at, |byte| byte ^ 0x40);
            assert_refused(read(damaged.clone()), ErrorKind::Corrupt, "journal");
            let before = OpenOptions::new().no_journal().open_bytes(damaged).unwrap();
            assert!(before.warnings()[0].contains("was not replayed"), "{:?}", before.warnings());
        }
    }
}

#[test]
fn a_journal_that_was_cut_is_an_error() {
    for block in [DESCRIPTOR, DESCRIPTOR + 3, COMMIT, COMMIT + 1] {
        let cut = image()[..block * BLOCK_LEN].to_vec();
        let error = packfs::open_bytes(cut).err().map(|error| error.kind());
        assert_eq!(error, Some(ErrorKind::Corrupt), "block {block}");
    }
}

#[test]
fn a_fast_commit_that_has_its_end_is_whole_or_an_error() {
    for at in [0, 2, 8, 12, 14, 20] {
        let damaged = with(FAST_COMMIT * BLOCK_LEN + at, |byte| byte ^ 1);
        assert_refused(read(damaged), ErrorKind::Corrupt, "fast commit 1 cannot be read whole");
    }
}

#[test]
fn no_flipped_bit_of_a_journal_changes_what_is_read_without_a_word() {
    let (whole, warnings) = read(image()).unwrap();
    let (log, fast) = (17 * BLOCK_LEN..(COMMIT + 1) * BLOCK_LEN, FAST_COMMIT * BLOCK_LEN..);
    let places = log.step_by(41).chain(fast.step_by(7).take(120));
    for (at, bit) in places.zip((0..8).cycle()) {
        let Ok((found, told)) = read(with(at, |byte| byte ^ 1 << bit)) else { continue };
        assert!(found.0 == whole.0 || told != warnings, "bit {bit} of byte {at:#x}");
    }
}

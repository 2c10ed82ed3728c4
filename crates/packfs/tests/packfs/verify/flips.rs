//! Bits of an image flipped between writing and verifying: what is accepted reads as what was
//! packed.

use super::{open, pack_judged, packer, read_all, verified};
use packfs_core::Silent;
use packfs_pack::Written;
use packfs_testkit::{Compare, Random, plain_tree, snapshot_tree};
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex};

const FLIPS: u64 = 150;

/// Flips bits one at a time; returns how many images were refused.
fn refused(format: &'static str, codec: &str) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = plain_tree();
    let found = Arc::new(Mutex::new(0));
    let count = Arc::clone(&found);
    let judge = move |written: &Written<'_>, bytes: Vec<u8>| {
        verified(written, bytes.clone())?;
        let right = read_all(bytes.clone());
        let mut random = Random::new(7);
        for flip in 0..FLIPS {
            // Half of them where metadata lie, at either end.
            let near_an_end = bytes.len().min(6000) as u64;
            let at = match flip % 4 {
                0 => random.below(near_an_end),
                1 => bytes.len() as u64 - 1 - random.below(near_an_end),
                _ => random.below(bytes.len() as u64),
            };
            let mut flipped = bytes.clone();
            flipped[at as usize] ^= 1 << random.below(8);
            if verified(written, flipped.clone()).is_err() {
                *count.lock().unwrap() += 1;
                continue;
            }
            let what = format!("{format}: a bit at {at:#x}");
            let there = catch_unwind(|| read_all(flipped)).unwrap_or_else(|_| panic!("{what}: unreadable"));
            right.assert_same(&there, Compare::ALL, &what);
        }
        Ok(())
    };
    pack_judged(&tree, &contents, &*packer(format, codec), &folder.path().join("image"), Box::new(judge))
        .unwrap();
    *found.lock().unwrap()
}

#[test]
fn no_flipped_bit_of_squashfs_is_accepted_that_shows() {
    assert!(refused("squashfs", "zstd:1") > FLIPS / 2);
}

#[test]
fn no_flipped_bit_of_erofs_is_accepted_that_shows() {
    assert!(refused("erofs", "lz4") > FLIPS / 2);
    // Stored as it is, only the hash can tell.
    assert!(refused("erofs", "none") > FLIPS / 2);
}

#[test]
fn what_was_read_is_what_the_image_holds() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = plain_tree();
    let planned = snapshot_tree(&tree, &contents);
    let judge = move |_: &Written<'_>, bytes: Vec<u8>| {
        open(bytes.clone())?.load_tree(&Silent)?;
        read_all(bytes).assert_same(&planned, Compare::default(), "image and tree");
        Ok(())
    };
    pack_judged(
        &tree,
        &contents,
        &*packer("squashfs", "zstd:1"),
        &folder.path().join("image"),
        Box::new(judge),
    )
    .unwrap();
}

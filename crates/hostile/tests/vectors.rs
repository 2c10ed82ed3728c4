//! Findings of the mutation run and of fuzzing, each in its smallest form with the required
//! outcome.

use packfs::MemoryImage;
use packfs::codec::Algorithm;
use packfs::integrity::RecoveryIndex;
use packfs_hostile::corpus::{images, inputs};
use packfs_hostile::properties::{Input, decode};
use packfs_hostile::{Sandpit, Verdict, fields, judge, repair};

/// The byte that picks a decoder.
fn number_of(algorithm: Algorithm) -> u8 {
    Algorithm::ALL.iter().position(|known| *known == algorithm).unwrap() as u8
}

/// Found by mutation (EROFS, seed 1, cases 1172, 1651, 1913, 5195, 8570): the check looked at the
/// type that an entry claims only for the first name of an inode, so that a hard link of an unknown
/// type was clean, and reading its directory failed.
#[test]
fn every_name_of_an_inode_has_to_claim_its_type() {
    let folder = tempfile::tempdir().unwrap();
    let base = images("erofs", folder.path()).unwrap().swap_remove(3);
    let pit = Sandpit::new().unwrap();
    let types: Vec<_> = fields(&base.bytes).into_iter().filter(|field| field.of == "Dirent").collect();
    // Of each entry: number, place of the name, type, and a byte that means nothing.
    let mut tried = 0;
    for entry in types.chunks_exact(4) {
        let mut image = base.bytes.clone();
        entry[2].set(&mut image, 9);
        repair(&mut image);
        let judged = judge(&image, &pit, 1, None);
        assert_eq!(judged.breach, None, "entry at {:#x}", entry[0].at);
        tried += u32::from(judged.verdict == Verdict::Error);
    }
    // All but the two that name directories themselves.
    assert!(tried + 2 >= types.len() as u32 / 4 && tried > 15, "only {tried} of {} told", types.len() / 4);
}

/// Found by fuzzing `decode` within a second: a DEFLATE stream with a code that the format leaves
/// unused. libdeflate, which decodes whole blocks, takes it; zlib-rs, which decodes beginnings,
/// refuses it, and so does Linux. Known and left: such a block is never written, and nothing but
/// the bytes of its own file are other than another reader's. Both must stay within their room.
#[test]
fn a_code_that_deflate_leaves_unused_stays_within_its_room() {
    let stream = b"\x4b\x4c\x1c\x07\xa3\x60\x14\x8c\x82\x51\x30\x0a\x46\xc1\x50\x07\x00";
    let deflate = number_of(Algorithm::Deflate);
    for room in [0_u16, 1, 666, 1999, 2000, 2001, 4096] {
        let [low, high] = room.to_le_bytes();
        assert_eq!(decode(&[&[deflate, low, high], &stream[..]].concat()), Ok(()), "{room} bytes");
    }
}

/// Found by fuzzing `decode`: an LZ4 match with the distance 0. liblz4 takes it, and what was in
/// the room before becomes part of the file, so that a block and its beginning need not agree.
#[test]
fn a_match_at_distance_zero_is_refused() {
    let rest = b"\x00\x19\x00\x00\x00\xcb\xcb\x2f\x51\x48\x54\x3d\x28\x4a\x4d\xe6\xca\x4e";
    assert_eq!(decode(&[&[number_of(Algorithm::Lz4)], &rest[..]].concat()), Ok(()));
}

/// Found while `recovery` was written: a recovery file with blocks of 1 GiB for an image of a few
/// bytes, which had that many zeros hashed for each of them. Refused: no block is longer than its
/// image needs.
#[test]
fn blocks_that_are_much_longer_than_their_image_are_refused() {
    let base = inputs(Input::Recovery).unwrap().swap_remove(0).bytes;
    for (block_len, is_read) in [(4096_u32 * 2, true), (4096 * 3, false), (1 << 30, false)] {
        let mut file = base[..base.len() - 2].to_vec();
        // One block of the image, one of recovery data.
        for (at, figure) in [(20, block_len), (24, 1), (28, 1)] {
            file[at..at + 4].copy_from_slice(&figure.to_le_bytes());
        }
        repair(&mut file);
        let read = RecoveryIndex::read(&MemoryImage::new("recovery file", file));
        assert_eq!(read.is_ok(), is_read, "{block_len}: {read:?}");
    }
}

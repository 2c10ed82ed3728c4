//! Blocks that cannot be decoded.

use crate::made_up::{FILE, SyntheticImage, synthetic_image};
use packfs_codec::BlockRef;
use packfs_core::{Error, ErrorKind, Result, Silent};
use packfs_format::{Extent, ExtentFrom, InodeId};
use packfs_read::PieceSink;
use std::sync::Mutex;

/// Collects files with a failed part.
struct Failing<'a>(&'a Mutex<Vec<usize>>);

impl PieceSink for Failing<'_> {
    fn piece(&mut self, _: usize, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn failed(&mut self, file_index: usize, error: Error) -> Result<()> {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        self.0.lock().unwrap().push(file_index);
        Ok(())
    }
}

/// Returns a volume with one file in a damaged block, and a sound one.
fn with_damaged_block(change: impl Fn(&mut BlockRef, &mut Vec<u8>)) -> SyntheticImage {
    let mut made = synthetic_image(8, 30);
    let block = |extents: &Vec<Extent>| {
        extents
            .iter()
            .find_map(|e| if let ExtentFrom::Block { block, .. } = e.from { Some(block) } else { None })
    };
    let sound = made.volume.files.iter().find_map(block).unwrap();
    let mut damaged = sound;
    change(&mut damaged, &mut made.image);
    let extent = |block| Extent { offset: 0, len: 1, from: ExtentFrom::Block { block, start: 0 } };
    let stored = Extent { offset: 0, len: 1, from: ExtentFrom::Stored(0) };
    made.volume.files = vec![vec![extent(damaged)], vec![stored]];
    made.contents = vec![vec![0], vec![made.image[0]]];
    made
}

#[test]
fn a_damaged_block_fails_its_files_and_no_others() {
    for (what, made) in [
        ("length", with_damaged_block(|block, _| block.decoded_len += 1)),
        ("decoded too long", with_damaged_block(|block, _| block.decoded_len -= 1)),
        ("outside", with_damaged_block(|block, image| block.offset = image.len() as u64 - 1)),
        ("far outside", with_damaged_block(|block, _| block.offset = u64::MAX - 10)),
        ("garbage", with_damaged_block(|block, image| image[block.offset as usize..][..9].fill(0xff))),
        ("huge", with_damaged_block(|block, _| block.decoded_len = u32::MAX)),
        ("huge stored", with_damaged_block(|block, _| block.stored_len = u32::MAX)),
    ] {
        for jobs in [1, 4] {
            let engine = made.engine(jobs, 1 << 20);
            let failed = Mutex::new(Vec::new());
            engine.in_disk_order(&made.wanted(), &Silent, &|| Ok(Failing(&failed))).unwrap();
            assert_eq!(failed.into_inner().unwrap(), [0], "{what}");
            let error = engine.in_file_order(&made.wanted(), &Silent, &mut |_, _| Ok(())).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
            let reader = engine.open_file(InodeId(FILE)).unwrap();
            assert!(reader.read_at(0, &mut [0]).is_err(), "{what}");
            assert!(reader.read_at(0, &mut [0]).is_err(), "{what}, asked again");
            assert_eq!(
                engine.open_file(InodeId(FILE + 1)).unwrap().read_at(0, &mut [0]).unwrap(),
                1,
                "{what}"
            );
        }
    }
}

#[test]
fn blocks_at_extreme_offsets_do_not_overflow() {
    let mut made = synthetic_image(16, 10);
    let block = |offset, stored_len| BlockRef { decoded_len: 9, ..BlockRef::stored(offset, stored_len) };
    let places = [(u64::MAX, 9), (u64::MAX - 5, 9), (u64::MAX, u32::MAX), (u64::MAX - (1 << 33), 9), (0, 9)];
    let extent =
        |(at, len)| Extent { offset: 0, len: 9, from: ExtentFrom::Block { block: block(at, len), start: 0 } };
    made.volume.files = places.map(|place| vec![extent(place)]).into();
    made.volume.files.push(vec![Extent { offset: 0, len: 9, from: ExtentFrom::Stored(u64::MAX - 3) }]);
    made.contents = vec![vec![0; 9]; made.volume.files.len()];
    for jobs in [1, 4] {
        let failed = Mutex::new(Vec::new());
        made.engine(jobs, 0).in_disk_order(&made.wanted(), &Silent, &|| Ok(Failing(&failed))).unwrap();
        let mut failed = failed.into_inner().unwrap();
        failed.sort_unstable();
        assert_eq!(failed, [0, 1, 2, 3, 5]);
    }
}

#[test]
fn errors_state_place_and_codec_of_the_block() {
    let made = with_damaged_block(|block, image| image[block.offset as usize..][..9].fill(0xff));
    let Some(Extent { from: ExtentFrom::Block { block, .. }, .. }) = made.volume.files[0].first() else {
        panic!("a block")
    };
    let error =
        made.engine(1, 0).open_file(InodeId(FILE)).unwrap().read_at(0, &mut [0]).unwrap_err().to_string();
    assert!(error.contains(&format!("block at {:#x}", block.offset)), "{error}");
    assert!(error.contains(block.algorithm.unwrap().name()), "{error}");
}

//! Recovery data: repairs any blocks up to the requested number; other damage is reported or
//! irrelevant.

use packfs_core::{Error, ErrorKind, Image, Result, Silent};
use packfs_integrity::{RecoveryIndex, RecoveryParams, RecoveryState, protect, repair, survey};
use packfs_testkit::Random;
use sha2::Digest;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes in memory, some of them unreadable.
struct Bytes {
    bytes: Vec<u8>,
    unreadable: Option<(u64, u64)>,
}

impl Image for Bytes {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if self.unreadable.is_some_and(|(start, end)| offset < end && offset + buf.len() as u64 > start) {
            return Err(Error::io("cannot read", std::io::Error::other("a broken sector")));
        }
        let rest = self.bytes.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn name(&self) -> String {
        "\"image\"".into()
    }
}

fn bytes(bytes: &[u8]) -> Bytes {
    Bytes { bytes: bytes.to_vec(), unreadable: None }
}

fn made(image: &[u8], percent: u32, jobs: usize) -> (RecoveryParams, Vec<u8>) {
    let file = tempfile::tempfile().unwrap();
    let params = RecoveryParams::new(image.len() as u64, percent).unwrap();
    protect(&bytes(image), params, &file, jobs, &Silent).unwrap();
    (params, contents(&file))
}

fn contents(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// Returns the state of a damaged image, and the repaired bytes.
fn repaired(image: &Bytes, recovery: &[u8]) -> (Result<RecoveryState>, Vec<u8>) {
    let recovery = bytes(recovery);
    let outcome = RecoveryIndex::read(&recovery).and_then(|index| {
        let state = survey(image, &recovery, &index, 2, &Silent)?;
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&image.bytes, 0).unwrap();
        repair(image, &recovery, &index, &state, &file, 2, &Silent)?;
        Ok((state, contents(&file)))
    });
    match outcome {
        Ok((state, bytes)) => (Ok(state), bytes),
        Err(error) => (Err(error), image.bytes.clone()),
    }
}

/// Returns `count` distinct numbers below `end`.
fn some(random: &mut Random, count: usize, end: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (0..end).collect();
    for place in 0..count {
        let other = place as u64 + random.below(end - place as u64);
        all.swap(place, other as usize);
    }
    all.truncate(count);
    all
}

#[test]
fn repairs_any_blocks_up_to_the_requested_number() {
    let mut random = Random::new(11);
    for round in 0..60 {
        let len = [1, 4096, 4097, 40_000, 1 << 20, 3_000_001][round % 6] + random.below(3000) as usize;
        let percent = [1, 5, 20, 100][random.below(4) as usize];
        let whole = random.noise(len);
        let (params, recovery) = made(&whole, percent, 2);
        let lost_max = params.recovery_count as usize;
        let count = 1 + random.below(lost_max as u64) as usize;
        let mut damaged = whole.clone();
        let lost = some(&mut random, count, params.data_count.into());
        for block in &lost {
            let start = *block as usize * params.block_len as usize;
            let end = (start + params.block_len as usize).min(len);
            match random.below(3) {
                0 => damaged[start] ^= 0x80,
                1 => damaged[start..end].fill(0xee),
                _ => damaged[end - 1] ^= 1,
            }
        }
        let (state, back) = repaired(&bytes(&damaged), &recovery);
        let state = state.unwrap_or_else(|e| panic!("{len} bytes, {percent} %, {count} lost: {e}"));
        assert!(back == whole, "{len} bytes, {percent} %, {count} lost");
        assert_eq!(state.lost.len(), lost.len());
    }
}

#[test]
fn refuses_one_block_too_many_without_changes() {
    let whole = Random::new(2).noise(200 * 4096);
    let (params, recovery) = made(&whole, 5, 2);
    assert_eq!((params.data_count, params.recovery_count), (200, 10));
    let mut damaged = whole.clone();
    for block in 0..11 {
        damaged[block * 4096 * 7] ^= 1;
    }
    let (state, back) = repaired(&bytes(&damaged), &recovery);
    let error = state.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error.to_string().contains("11 of 200 blocks") && error.to_string().contains("only 10"),
        "{error}"
    );
    assert!(back == damaged);
    damaged[0] ^= 1;
    assert!(repaired(&bytes(&damaged), &recovery).1 == whole);
}

#[test]
fn damage_to_the_recovery_file_costs_only_the_damaged_blocks() {
    let whole = Random::new(3).noise(1000 * 4096 + 5);
    let (params, recovery) = made(&whole, 10, 2);
    assert_eq!((params.data_count, params.recovery_count), (1001, 101));
    let recovery_at = |index: usize| 5 * 4096 + index * 4096;
    let mut image = whole.clone();
    image[..81 * 4096].fill(0);
    // 20 recovery blocks are lost, and half of the pages of the index: 5 pages before, 5 after the
    // data.
    let mut worn = recovery.clone();
    worn[recovery_at(30)..recovery_at(50)].fill(7);
    let parity_at = recovery_at(101);
    for at in [0, 2 * 4096, 4 * 4096 + 4095, parity_at, parity_at + 4 * 4096 + 99] {
        worn[at] ^= 1;
    }
    let (state, back) = repaired(&bytes(&image), &worn);
    let state = state.unwrap();
    assert!(back == whole);
    assert_eq!((state.lost.len(), state.good_recovery.len()), (81, 81));
    // One more recovery block.
    worn[recovery_at(80)] ^= 1;
    assert!(repaired(&bytes(&image), &worn).0.unwrap_err().to_string().contains("only 80"));
    worn[recovery_at(80)] ^= 1;
    // One more page.
    worn[4096] ^= 1;
    assert!(repaired(&bytes(&image), &worn).0.unwrap_err().to_string().contains("6 of 10 pages"));
    // Truncated inside the recovery blocks: the index at the beginning is enough.
    image.copy_from_slice(&whole);
    image[7 * 4096] ^= 1;
    assert!(repaired(&bytes(&image), &recovery[..recovery_at(1)]).1 == whole);
    assert!(repaired(&bytes(&image), &recovery[..4 * 4096]).0.is_err());
    // Only the recovery pages at the end are left, at their position.
    let mut behind = recovery.clone();
    behind[..recovery_at(100)].fill(0);
    assert!(repaired(&bytes(&image), &behind).1 == whole);
}

#[test]
fn unreadable_blocks_are_lost_and_repaired() {
    let whole = Random::new(4).noise(64 * 4096);
    let (_, recovery) = made(&whole, 10, 1);
    let image = Bytes { bytes: whole.clone(), unreadable: Some((8192 + 100, 4 * 4096 + 1)) };
    let (state, back) = repaired(&image, &recovery);
    assert_eq!(state.unwrap().lost, [2, 3, 4]);
    assert!(back == whole);
}

#[test]
fn repairs_a_truncated_image_and_keeps_appended_data() {
    let whole = Random::new(5).noise(64 * 4096 + 9);
    let (_, recovery) = made(&whole, 10, 2);
    let (state, back) = repaired(&bytes(&whole[..60 * 4096 + 4]), &recovery);
    assert_eq!(state.unwrap().lost, [60, 61, 62, 63, 64]);
    assert!(back == whole);
    let longer = [&whole[..], b"appended"].concat();
    let (state, back) = repaired(&bytes(&longer), &recovery);
    let state = state.unwrap();
    assert!(state.is_intact() && state.beyond == 8 && back == longer);
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let whole = Random::new(6).noise(5_000_000);
    let (_, first) = made(&whole, 7, 1);
    for jobs in [2, 3, 16] {
        assert!(made(&whole, 7, jobs).1 == first, "{jobs}");
    }
    // The format is stable: later versions can use recovery data of earlier ones.
    let hash: [u8; 32] = sha2::Sha256::digest(&first).into();
    assert_eq!(
        packfs_core::to_hex(&hash),
        "32e2add4d446f7a6a08187845a5a046609f476d74388e5f45ab9bdc8c88b3063"
    );
}

#[test]
fn refuses_invalid_recovery_files() {
    let mut random = Random::new(8);
    let whole = random.noise(30 * 4096);
    let (_, recovery) = made(&whole, 20, 1);
    for bad in [vec![], random.noise(4096), random.noise(100_000), recovery[1..].to_vec()] {
        assert_eq!(RecoveryIndex::read(&bytes(&bad)).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    // Random bit flips: refused or correct, never a panic or a wrong result.
    for _ in 0..300 {
        let mut worn = recovery.clone();
        for _ in 0..1 + random.below(20) {
            let at = random.below(worn.len() as u64) as usize;
            worn[at] ^= 1 << random.below(8);
        }
        let mut image = whole.clone();
        image[random.below(whole.len() as u64) as usize] ^= 1;
        let (state, back) = repaired(&bytes(&image), &worn);
        assert!(state.is_err() || back == whole);
    }
}

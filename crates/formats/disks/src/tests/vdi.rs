//! VDI.

use super::*;
use crate::Vdi;

const BLOCK: usize = 512;

/// Four blocks: the second, none, zeros, and the first, of which a part is cut off.
fn made() -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    let mut put = |at: usize, word: u32| bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    let words = [(64, 0xbeda_107f), (68, 0x1_0001), (72, 400), (76, 1), (340, 512), (344, 1024)];
    words
        .iter()
        .chain(&[(368, 3 * BLOCK as u32 + 100), (376, BLOCK as u32), (384, 4), (388, 2)])
        .for_each(|(at, word)| put(*at, *word));
    [1, u32::MAX, u32::MAX - 1, 0].iter().zip((512..).step_by(4)).for_each(|(word, at)| put(at, *word));
    [bytes, vec![b'd'; BLOCK], vec![b'a'; BLOCK]].concat()
}

#[test]
fn blocks_are_found_by_their_numbers() {
    assert_sound(&Vdi, &made());
    assert!(disk(&Vdi, &made()) == [vec![b'a'; BLOCK], vec![0; 2 * BLOCK], vec![b'd'; 100]].concat());
}

#[test]
fn faults_are_told_with_their_place() {
    let made = made();
    rejects(
        &Vdi,
        &made,
        &[
            (64, &[0], "no 0xbeda107f at 0x40"),
            (376, &[1, 2], "blocks of 513 bytes, powers"),
            (368, &[0xff; 8], "a disk of 18446744073709551615 bytes, but the map has room for 2048"),
            (384, &[0xff; 4], "block map at 0x200: 4294967295 entries"),
            (512, &[7], "block 0: is at 0x1200, but the file ends at 0x800"),
        ],
    );
    refused(&Vdi, &made[..400], ErrorKind::Corrupt, "400 bytes long, 456 needed");
    refused(&Vdi, &patched(&made, 70, &[2]), ErrorKind::Unsupported, "version 2");
    refused(
        &Vdi,
        &patched(&made, 76, &[4]),
        ErrorKind::Unsupported,
        "the difference to another disk (type 4)",
    );
    refused(&Vdi, &patched(&made, 380, &[1]), ErrorKind::Unsupported, "1 bytes before each block");
    refused(&Vdi, &patched(&made, 440, &[4]), ErrorKind::Unsupported, "the difference to another disk");
    survives(&Vdi, &made, (0..72).chain(340..530));
}

#[test]
fn blocks_in_one_place_or_over_the_map_are_findings() {
    let findings = |words: &[u8]| findings(&Vdi, &patched(&made(), 512, words));
    assert!(findings(&[0]).iter().any(|it| it.fault == "several blocks are at 0x400 to 0x600"));
    for (words, place, fault) in [
        (&[0xff; 4][..], "header", "2 blocks are stored, but the block map has 1"),
        (&[2], "block map", "names block 2, numbers below 2 allowed"),
    ] {
        let found = findings(words);
        assert!(found.iter().any(|it| it.place == place && it.fault == fault), "{found:?}");
    }
    // The data begins before the map ends.
    let over = patched(&made(), 344, &[8, 2]);
    let over = super::findings(&Vdi, &over);
    assert!(over.iter().any(|it| it.place == "block map" && it.fault.contains("are over 0x200")), "{over:?}");
}

#[test]
fn a_map_that_names_one_block_again_and_again_takes_no_memory() {
    // 4,194,304 blocks at the first address, in a map that the file has as a hole.
    let file = tempfile::tempfile().unwrap();
    let rows = 4_u32 << 20;
    let mut head = made()[..512].to_vec();
    head[384..388].copy_from_slice(&rows.to_le_bytes());
    head[368..376].copy_from_slice(&(u64::from(rows) * 512).to_le_bytes());
    std::os::unix::fs::FileExt::write_all_at(&file, &head, 0).unwrap();
    file.set_len(u64::from(rows) * 4 + 4096).unwrap();
    let image = packfs_core::FileImage::of(file, std::path::Path::new("test")).unwrap();
    let volume = Vdi.open(Arc::new(image)).unwrap();
    assert_refused(volume.space(), ErrorKind::Corrupt, "many overlap");
    let mut findings = Vec::new();
    volume.check(&mut |finding| findings.push(finding)).unwrap();
    assert!(findings.iter().any(|it| it.fault.contains("many overlap")), "{findings:?}");
}

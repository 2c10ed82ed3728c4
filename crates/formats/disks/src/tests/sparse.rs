//! Android sparse images.

use super::*;
use crate::AndroidSparse;

const BLOCK: usize = 512;

fn chunk(kind: u16, blocks: u32, data: &[u8]) -> Vec<u8> {
    let head = [kind, 0].map(u16::to_le_bytes).concat();
    let lens = [blocks, 12 + data.len() as u32].map(u32::to_le_bytes).concat();
    [&head, &lens, data].concat()
}

/// Two stored blocks, three filled ones, a hole, zeros, a checksum, and a block.
fn made() -> Vec<u8> {
    let chunks = [
        chunk(0xcac1, 2, &[b'a'; 2 * BLOCK]),
        chunk(0xcac2, 3, &[1, 2, 3, 4]),
        chunk(0xcac3, 2, &[]),
        chunk(0xcac2, 1, &[0; 4]),
        chunk(0xcac4, 0, &[9; 4]),
        chunk(0xcac1, 1, &[b'z'; BLOCK]),
    ];
    let halves = [1, 0, 28, 12].map(u16::to_le_bytes).concat();
    let words = [BLOCK as u32, 9, chunks.len() as u32, 0].map(u32::to_le_bytes).concat();
    [&0xed26_ff3a_u32.to_le_bytes()[..], &halves, &words, &chunks.concat()].concat()
}

fn wanted() -> Vec<u8> {
    let fill = [1, 2, 3, 4].repeat(3 * BLOCK / 4);
    [vec![b'a'; 2 * BLOCK], fill, vec![0; 3 * BLOCK], vec![b'z'; BLOCK]].concat()
}

#[test]
fn chunks_of_every_kind_are_read() {
    assert_sound(&AndroidSparse, &made());
    assert!(disk(&AndroidSparse, &made()) == wanted());
    // What chunks are filled with can be read from anywhere.
    let volume = open(&AndroidSparse, &made()).unwrap();
    let data = volume.data_image().unwrap();
    let mut bytes = [0; 7];
    data.read_exact_at(made().len() as u64 + 2 * BLOCK as u64 + 5, &mut bytes).unwrap();
    assert_eq!(bytes, [2, 3, 4, 1, 2, 3, 4]);
}

#[test]
fn longer_headers_are_passed_over() {
    let made = made();
    let mut longer = patched(&made[..28], 8, &[32, 0, 12, 0]);
    longer.extend([0xee; 4]);
    longer.extend(&made[28..]);
    assert!(disk(&AndroidSparse, &longer) == wanted());
}

#[test]
fn faults_are_told_with_their_place() {
    let made = made();
    rejects(
        &AndroidSparse,
        &made,
        &[
            (0, &[0], "no 0xed26ff3a at 0x0"),
            (12, &[0; 4], "block size 0"),
            (12, &[2, 2], "block size 514"),
            (12, &[0xff; 4], "block size 4294967295"),
            (8, &[27], "a header has 27 bytes, at least 28"),
            (10, &[11], "a chunk header has 11 bytes, at least 12"),
            (20, &[0xff; 4], "4294967295 chunks, room for"),
            (16, &[10], "10 blocks, but the chunks have 9"),
            (28, &[0xc5], "chunk 0 at 0x1c: type 0xcac5"),
            (36, &[0], "chunk 0 at 0x1c: 1024 bytes long, 1036 expected"),
            (10, &[16], "chunk 0 at 0x1c: 1036 bytes long, 1040 expected"),
        ],
    );
    refused(&AndroidSparse, &made[..27], ErrorKind::Corrupt, "27 bytes long, 28 needed");
    refused(&AndroidSparse, &made[..made.len() - 1], ErrorKind::Corrupt, "chunk 5 at");
    refused(&AndroidSparse, &patched(&made, 4, &[2]), ErrorKind::Unsupported, "version 2, 1 is supported");
    survives(&AndroidSparse, &made, 0..made.len());
}

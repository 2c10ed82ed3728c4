//! The beginning of a block can be had without its end.

use crate::common::{Noise, SPECS, noise, program, settings, text};
use packfs_codec::{Algorithm, Decoders, decoder, encoder};

const PLAIN_LEN: usize = 40_000;

/// Blocks with long runs, long literals and everything between.
fn blocks() -> Vec<Vec<u8>> {
    let mixed = [noise(700), vec![0; 9000], text(3000), program(20_000), noise(2000), vec![7; 5300]].concat();
    assert_eq!(mixed.len(), PLAIN_LEN);
    vec![mixed, vec![0; PLAIN_LEN], text(PLAIN_LEN), noise(PLAIN_LEN)]
}

fn compress(spec: &str, block: &[u8]) -> (Algorithm, Vec<u8>) {
    let settings = settings(spec, 64 << 10);
    let mut packed = vec![0; block.len() + 4096];
    let len = encoder(&settings).unwrap().compress(block, &mut packed).unwrap().unwrap();
    packed.truncate(len);
    (settings.algorithm(), packed)
}

#[test]
fn every_prefix_is_what_the_block_begins_with() {
    let mut decoders = Decoders::new();
    for spec in SPECS {
        for block in blocks() {
            let (algorithm, packed) = compress(spec, &block);
            for len in [0, 1, 2, 13, 700, 701, 9700, 12_345, PLAIN_LEN - 1, PLAIN_LEN] {
                let mut dst = vec![0x5A; len + 64];
                let result = decoders.decompress_prefix(algorithm, &packed, &mut dst[..len]);
                assert_eq!(result, Ok(len), "{spec}");
                assert!(dst[..len] == block[..len], "{spec}, {len}: other bytes came out");
                assert!(dst[len..].iter().all(|&byte| byte == 0x5A), "{spec}, {len}: wrote out of bounds");
            }
            let mut plain = vec![0; PLAIN_LEN];
            assert_eq!(
                decoders.decompress(algorithm, &packed, &mut plain),
                Ok(PLAIN_LEN),
                "{spec} is usable after"
            );
            assert!(plain == block, "{spec}");
        }
    }
}

#[test]
fn frames_of_zstd_that_follow_each_other_are_one() {
    let (algorithm, first) = compress("zstd:3", &text(3000));
    let (_, second) = compress("zstd:3", &noise(700));
    let packed = [&first[..], &second, &[0xaa; 50]].concat();
    let mut dst = vec![0; 3700];
    assert_eq!(Decoders::new().decompress_prefix(algorithm, &packed, &mut dst), Ok(3700));
    assert!(dst == [text(3000), noise(700)].concat());
    assert_eq!(Decoders::new().decompress_prefix(algorithm, &packed, &mut vec![0; 4000]), Ok(3700));
}

#[test]
fn a_block_shorter_than_requested_returns_its_length() {
    for spec in SPECS {
        let block = text(5000);
        let (algorithm, packed) = compress(spec, &block);
        let mut dst = vec![0; 6000];
        match decoder(algorithm).decompress_prefix(&packed, &mut dst) {
            Ok(5000) => assert!(dst[..5000] == block, "{spec}"),
            // Its blocks do not tell where they end: what comes after the end is noise, or an
            // error.
            _ if algorithm == Algorithm::MicroLzma => {}
            other => panic!("{spec}: {other:?}"),
        }
    }
}

#[test]
fn damage_behind_the_prefix_is_not_looked_at() {
    for spec in SPECS {
        let block = noise(PLAIN_LEN);
        let (algorithm, mut packed) = compress(spec, &block);
        let middle = packed.len() / 2;
        packed[middle..].fill(0xFF);
        let mut dst = vec![0; 1000];
        // The blocks of these are coded as a whole.
        let looks_ahead = spec.starts_with("zstd");
        match decoder(algorithm).decompress_prefix(&packed, &mut dst) {
            Ok(1000) => assert!(dst == block[..1000], "{spec}"),
            Err(_) if looks_ahead => {}
            other => panic!("{spec}: {other:?}"),
        }
    }
}

#[test]
fn random_damage_never_panics_nor_writes_out_of_bounds() {
    let mut random = Noise(3);
    for spec in ["gzip", "lzma", "lzo", "xz", "lz4", "zstd", "deflate", "microlzma"] {
        let (algorithm, packed) = compress(spec, &blocks()[0][..8000]);
        let mut decoder = decoder(algorithm);
        for _ in 0..2000 {
            let mut damaged = packed.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(damaged.len());
                match random.below(3) {
                    0 => damaged[at] = random.next() as u8,
                    1 => damaged[at] = [0, 0xFF, 0x7F, 0x80][random.below(4)],
                    _ => damaged.truncate(at.max(1)),
                }
            }
            let len = random.below(10_000);
            let mut dst = vec![0x5A; len + 64];
            if let Ok(decoded_len) = decoder.decompress_prefix(&damaged, &mut dst[..len]) {
                assert!(decoded_len <= len);
            }
            assert!(dst[len..].iter().all(|&byte| byte == 0x5A), "{spec}: wrote out of bounds");
        }
        for len in 0..300 {
            for garbage in [noise(len), vec![0; len], vec![0xFF; len]] {
                let _ = decoder.decompress_prefix(&garbage, &mut [0; 1000]);
            }
        }
    }
}

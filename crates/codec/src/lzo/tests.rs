//! Round trips, hand-made streams of every instruction, and damage.

use super::{Compressor, decompress};
use packfs_core::codec::LzoVariant;

const ENCODERS: [(LzoVariant, u8); 8] = [
    (LzoVariant::X1, 0),
    (LzoVariant::X1_11, 0),
    (LzoVariant::X1_12, 0),
    (LzoVariant::X1_15, 0),
    (LzoVariant::X999, 1),
    (LzoVariant::X999, 5),
    (LzoVariant::X999, 8),
    (LzoVariant::X999, 9),
];

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Bytes with matches of all lengths and distances: copies of what came before between stretches of noise.
    fn mixture(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 1000);
        while bytes.len() < len {
            let part = 1 + self.next() as usize % [4, 20, 300, 3000][self.next() as usize % 4];
            if bytes.is_empty() || self.next().is_multiple_of(3) {
                bytes.extend((0..part).map(|_| (self.next() % 200) as u8));
            } else {
                let distance = 1 + self.next() as usize
                    % bytes.len().min([8, 2000, 20_000, 70_000][self.next() as usize % 4]);
                for _ in 0..part {
                    bytes.push(bytes[bytes.len() - distance]);
                }
            }
        }
        bytes.truncate(len);
        bytes
    }
}

#[track_caller]
fn round_trips(src: &[u8]) {
    let mut out = vec![0; src.len() + src.len() / 8 + 100];
    for (variant, level) in ENCODERS {
        let mut compressor = Compressor::new(variant, level);
        let len = compressor.compress(src, &mut out).expect("room enough");
        let mut back = vec![0xee; src.len()];
        assert_eq!(
            decompress(&out[..len], &mut back),
            Ok(src.len()),
            "{variant:?} {level}, {} bytes",
            src.len()
        );
        assert!(back == src, "{variant:?} {level}, {} bytes", src.len());
        let first = out[..len].to_vec();
        assert_eq!(compressor.compress(src, &mut out), Some(len), "used again");
        assert!(out[..len] == first, "used again");
        assert_eq!(compressor.compress(src, &mut out[..len - 1]), None, "one byte less is too little");
    }
}

#[test]
fn every_short_length_survives() {
    let mut random = Random(1);
    for len in (0..300).chain([511, 512, 513, 2047, 2048, 2049, 4095, 4096]) {
        round_trips(&random.mixture(len));
        round_trips(&vec![b'a'; len]);
    }
}

#[test]
fn long_blocks_of_every_kind_survive() {
    let mut random = Random(2);
    for len in [16_384, 49_151, 49_152, 65_535, 65_536, 65_537, 131_072, 1 << 20] {
        round_trips(&random.mixture(len));
    }
    round_trips(&vec![0; 1 << 20]);
    let noise: Vec<u8> = (0..200_000).map(|_| random.next() as u8).collect();
    round_trips(&noise);
    // The same noise again, at and around the farthest distance that can be said.
    for distance in [49_150, 49_151, 49_152, 49_153] {
        round_trips(&[&noise[..distance], &noise[..distance]].concat());
    }
}

#[test]
fn real_programs_survive() {
    let Ok(program) = std::fs::read("/proc/self/exe") else { return };
    for block in program.chunks(128 << 10).take(16) {
        round_trips(block);
    }
}

#[test]
fn damaged_streams_are_errors_or_other_bytes_and_never_more() {
    let mut random = Random(3);
    let src = random.mixture(5000);
    let mut stored = vec![0; 8000];
    let len = Compressor::new(LzoVariant::X999, 8).compress(&src, &mut stored).unwrap();
    stored.truncate(len);
    let mut back = vec![0; src.len()];
    let mut refused = 0;
    for _ in 0..100_000 {
        let mut damaged = stored.clone();
        for _ in 0..1 + random.next() % 3 {
            let at = random.next() as usize % damaged.len();
            damaged[at] = random.next() as u8;
        }
        if random.next().is_multiple_of(8) {
            damaged.truncate(random.next() as usize % damaged.len());
        }
        refused += u32::from(decompress(&damaged, &mut back).is_err());
    }
    assert!(refused > 10_000, "only {refused} refused");
}

#[test]
fn every_cut_and_every_addition_is_an_error() {
    let src = Random(4).mixture(3000);
    let mut stored = vec![0; 5000];
    let len = Compressor::new(LzoVariant::X999, 8).compress(&src, &mut stored).unwrap();
    let mut back = vec![0; src.len()];
    for cut in 0..len {
        assert!(decompress(&stored[..cut], &mut back).is_err(), "cut to {cut}");
    }
    assert!(decompress(&[&stored[..len], &[0]].concat(), &mut back).is_err(), "a byte behind the end");
    assert!(decompress(&stored[..len], &mut back[..src.len() - 1]).is_err(), "too little room");
}

#[test]
fn hand_made_streams_decode_as_described() {
    // Each: stream, then what it says. 0x11 0 0 ends a stream.
    for (stream, expected) in [
        (&[0x11, 0, 0][..], &b""[..]),
        // 18 and more: a first run of literals, less 17.
        (&[17 + 4, b'a', b'b', b'c', b'd', 0x11, 0, 0], b"abcd"),
        // A run of 3 to 18 literals, less 3.
        (&[0x01, b'a', b'b', b'c', b'd', 0x11, 0, 0], b"abcd"),
        // Length 3 to 4, distance up to 2,048: 01LDDDSS, distance - 1 = byte * 8 + DDD.
        (&[17 + 4, b'a', b'b', b'c', b'd', 0b0100_1100, 0, 0x11, 0, 0], b"abcdabc"),
        // Length 5 to 8: 1LLDDDSS.
        (&[17 + 4, b'a', b'b', b'c', b'd', 0b1000_1100, 0, 0x11, 0, 0], b"abcdabcda"),
        // Distance up to 16 KiB: 001LLLLL, length less 2, distance - 1 in the upper 14 bits.
        (&[17 + 4, b'a', b'b', b'c', b'd', 0x20 | 4, 3 << 2, 0, 0x11, 0, 0], b"abcdabcdab"),
        // Two bytes from near by, only behind 1 to 3 literals: 0000DDSS.
        (&[17 + 1, b'a', 0x00, 0, 0x11, 0, 0], b"aaa"),
        // Literals carried in the last two bits of a match.
        (&[17 + 4, b'a', b'b', b'c', b'd', 0b0100_1101, 0, b'!', 0x11, 0, 0], b"abcdabc!"),
    ] {
        let mut back = vec![0; expected.len()];
        assert_eq!(decompress(stream, &mut back), Ok(expected.len()), "{stream:02x?}");
        assert_eq!(back, expected, "{stream:02x?}");
    }
}

#[test]
fn matches_that_reach_before_the_start_are_refused() {
    let mut back = [0; 100];
    for stream in [
        &[17 + 4, b'a', b'b', b'c', b'd', 0b0101_0000, 0, 0x11, 0, 0][..],
        &[17 + 4, b'a', b'b', b'c', b'd', 0x20 | 4, 4 << 2, 0, 0x11, 0, 0],
        &[0x20 | 4, 0, 0, 0x11, 0, 0],
        &[0x18, 1, 0, 0x11, 0, 0],
    ] {
        assert!(decompress(stream, &mut back).is_err(), "{stream:02x?}");
    }
}

//! Round trips, hand-made streams of every instruction, and damage.

use super::decode::decompress;
use super::{Compressor, LzoError};
use crate::LzoVariant;

/// Every way of choosing matches, at several efforts.
const ENCODERS: [(LzoVariant, u8); 10] = [
    (LzoVariant::X1, 0),
    (LzoVariant::X1_11, 0),
    (LzoVariant::X1_12, 0),
    (LzoVariant::X1_15, 0),
    (LzoVariant::X999, 1),
    (LzoVariant::X999, 3),
    (LzoVariant::X999, 5),
    (LzoVariant::X999, 6),
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

    /// Bytes with matches of all lengths and distances: copies of what came before between
    /// stretches of noise.
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
        // Two bytes from near by, only after 1 to 3 literals: 0000DDSS.
        (&[17 + 1, b'a', 0x00, 0, 0x11, 0, 0], b"aaa"),
        // Literals carried in the last two bits of a match.
        (&[17 + 4, b'a', b'b', b'c', b'd', 0b0100_1101, 0, b'!', 0x11, 0, 0], b"abcdabc!"),
    ] {
        let mut back = vec![0; expected.len()];
        assert_eq!(decompress(stream, &mut back), Ok(expected.len()), "{stream:02x?}");
        assert_eq!(back, expected, "{stream:02x?}");
    }
}

/// A stream that starts with `run` literals, the bytes counted up, followed by `instructions` and
/// the end marker; and these literals.
fn after_run(run: usize, instructions: &[u8]) -> (Vec<u8>, Vec<u8>) {
    assert!(run > 18);
    let literals: Vec<u8> = (0..run).map(|i| (i * 7 + i / 256) as u8).collect();
    let mut stream = vec![0];
    let excess = run - 18;
    stream.resize(1 + (excess - 1) / 255, 0);
    stream.push(((excess - 1) % 255 + 1) as u8);
    stream.extend(&literals);
    stream.extend(instructions);
    stream.extend([0x11, 0, 0]);
    (stream, literals)
}

#[track_caller]
fn copies(run: usize, instruction: &[u8], distance: usize, len: usize) {
    let (stream, mut expected) = after_run(run, instruction);
    for _ in 0..len {
        expected.push(expected[expected.len() - distance]);
    }
    // With and without room for copies in fixed steps.
    for room in [expected.len(), expected.len() + 1000] {
        let mut back = vec![0; room];
        assert_eq!(decompress(&stream, &mut back), Ok(expected.len()));
        assert!(back[..expected.len()] == expected);
    }
}

#[test]
fn every_form_of_match_copies_its_distance_and_length() {
    // Three bytes after a run of four literals or more: 0000DDSS, distance - 2,049 = byte * 4 +
    // DD.
    copies(4000, &[0b0000_0000, 0], 2049, 3);
    copies(4000, &[0b0000_1100, 255], 3072, 3);
    // Up to 16 KiB.
    copies(20_000, &[0x21, 0xfc, 0xff], 16_384, 3);
    copies(20_000, &[0x3f, 0, 0], 1, 33);
    copies(20_000, &[0x20, 1, 0, 1], 65, 34);
    copies(20_000, &[0x20, 255, 6 << 2, 0], 7, 288);
    copies(20_000, &[0x20, 0, 0, 1, 6 << 2, 0], 7, 544);
    // Beyond 16 KiB: 0001HLLL.
    copies(60_000, &[0x11, 1 << 2, 0], 16_385, 3);
    copies(60_000, &[0x17, 0xfc, 0xff], 32_767, 9);
    copies(60_000, &[0x19, 0, 0], 32_768, 3);
    copies(60_000, &[0x18, 1, 0xfc, 0xff], 49_151, 10);
    copies(60_000, &[0x18, 0, 0, 200, 0xfc, 0xff], 49_151, 9 + 2 * 255 + 200);
}

#[test]
fn every_overlap_repeats_what_lies_between() {
    for distance in 1..=40 {
        for len in [34, 35, 63, 64, 65, 200, 288] {
            copies(100, &[0x20, (len - 33) as u8, ((distance - 1) << 2) as u8, 0], distance, len);
        }
    }
}

#[test]
fn errors_state_fault_and_place() {
    let abcd = |rest: &[u8]| [&[17 + 4, b'a', b'b', b'c', b'd'], rest].concat();
    for (stream, room, expected) in [
        (vec![], 9, LzoError::MissingEndMarker { at: 0 }),
        (abcd(&[]), 9, LzoError::MissingEndMarker { at: 5 }),
        (abcd(&[0x11, 0]), 9, LzoError::InputOverrun { at: 5 }),
        (abcd(&[0x11, 0])[..4].to_vec(), 9, LzoError::InputOverrun { at: 0 }),
        (abcd(&[0x20, 0, 0, 0]), 9, LzoError::InputOverrun { at: 5 }),
        (abcd(&[0b0100_1101, 0]), 9, LzoError::InputOverrun { at: 5 }),
        (abcd(&[0x11, 0, 0]), 3, LzoError::OutputOverrun { at: 0, wanted: 4, room: 3 }),
        (abcd(&[0b0100_1100, 0, 0x11, 0, 0]), 6, LzoError::OutputOverrun { at: 5, wanted: 3, room: 2 }),
        (
            abcd(&[0b0101_0000, 0, 0x11, 0, 0]),
            9,
            LzoError::LookbehindOverrun { at: 5, distance: 5, decoded: 4 },
        ),
        (abcd(&[0x12, 0, 0]), 9, LzoError::BadEndMarker { at: 5, len: 4 }),
        (abcd(&[0x11, 0, 0, 0, 0]), 9, LzoError::TrailingBytes { at: 8, count: 2 }),
        (vec![17, 1, 0x11, 0, 0], 9, LzoError::RunLengthStream),
    ] {
        assert_eq!(decompress(&stream, &mut vec![0; room]), Err(expected), "{stream:02x?}");
    }
}

#[test]
fn a_length_beyond_any_output_is_an_error() {
    let mut stream = vec![17 + 4, b'a', b'b', b'c', b'd', 0x20];
    stream.resize(1 << 20, 0);
    stream.extend([1, 0, 0, 0x11, 0, 0]);
    let found = decompress(&stream, &mut vec![0; 100_000]);
    assert!(matches!(found, Err(LzoError::OutputOverrun { at: 5, .. })), "{found:?}");
}

#[test]
fn earlier_inputs_leave_no_trace_in_the_output() {
    let mut random = Random(5);
    let (first, second) = (random.mixture(90_000), random.mixture(70_000));
    let mut out = vec![0; 100_000];
    for (variant, level) in ENCODERS {
        let fresh_len = Compressor::new(variant, level).compress(&second, &mut out).unwrap();
        let fresh = out[..fresh_len].to_vec();
        let mut used = Compressor::new(variant, level);
        used.compress(&first, &mut out).unwrap();
        used.compress(&second[1000..], &mut out).unwrap();
        assert_eq!(used.compress(&second, &mut out), Some(fresh_len), "{variant:?} {level}");
        assert!(out[..fresh_len] == fresh, "{variant:?} {level}");
    }
}

#[test]
fn a_higher_level_is_no_larger_on_text() {
    let text = include_str!("optimal.rs").repeat(2) + include_str!("decode.rs");
    let mut out = vec![0; 2 * text.len()];
    let lens: Vec<usize> = (1..=9)
        .map(|level| Compressor::new(LzoVariant::X999, level).compress(text.as_bytes(), &mut out).unwrap())
        .collect();
    assert!(lens.is_sorted_by(|lower, higher| lower >= higher), "{lens:?}");
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

//! Our encoder against the shortest of all encodings, found by trying them all.

use super::High;
use super::format::{
    END_MATCH_LEN, END_RUN_LEN, MATCH_COST, MATCH_LEN_MIN, MATCH_LEN_SHORT, RUN_LEN_SHORT, extension_len,
};
use crate::lz4::coders::ffi;

/// splitmix64
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Literals of few values and copies of what was before.
    fn input(&mut self, len: usize) -> Vec<u8> {
        let (values, copy) = (1 + self.below(60), 1 + self.below(30));
        let mut bytes = Vec::new();
        while bytes.len() < len {
            if self.below(copy) == 0 && !bytes.is_empty() {
                let distance = 1 + self.below(bytes.len());
                for _ in 0..self.below(40) {
                    bytes.push(bytes[bytes.len() - distance]);
                }
            } else {
                bytes.push(self.below(values) as u8);
            }
        }
        bytes.truncate(len);
        bytes
    }
}

/// The length of the shortest block.
fn shortest(src: &[u8]) -> usize {
    // Per place, the least cost of what is before it if a match ends there.
    let mut matched: Vec<Option<usize>> = vec![None; src.len() + 1];
    matched[0] = Some(0);
    let literals = |matched: &[Option<usize>], at: usize| {
        let runs = (0..=at).filter_map(|start| {
            matched[start].map(|cost| cost + at - start + extension_len(at - start, RUN_LEN_SHORT))
        });
        runs.min().unwrap()
    };
    for at in 0..(src.len() + 1).saturating_sub(END_MATCH_LEN) {
        let cost = literals(&matched, at) + MATCH_COST as usize;
        let lens = (0..at).map(|from| src[from..].iter().zip(&src[at..]).take_while(|(a, b)| a == b).count());
        let longest = lens.max().unwrap_or(0).min(src.len() - END_RUN_LEN - at);
        for len in MATCH_LEN_MIN..=longest {
            let cost = cost + extension_len(len, MATCH_LEN_SHORT);
            let best = &mut matched[at + len];
            *best = Some(best.map_or(cost, |best| best.min(cost)));
        }
    }
    literals(&matched, src.len()) + 1
}

#[test]
fn blocks_are_the_shortest_possible() {
    let mut random = Noise(1);
    let mut high = High::new(12);
    let (mut worse, mut sum) = (0, 0);
    for number in 0..1000 {
        let len = random.below(400);
        let src = random.input(len);
        let mut dst = vec![0; 1000];
        let written = high.compress(&src, &mut dst).unwrap();
        let shortest = shortest(&src);
        assert!(written >= shortest, "input {number}: {written} bytes cannot be, {shortest} is the least");
        sum += shortest;
        worse += written - shortest;
    }
    assert!(worse * 1000 <= sum, "{worse} bytes of {sum} too many");
}

#[test]
fn no_more_of_an_input_would_fit() {
    let mut random = Noise(2);
    let mut high = High::new(12);
    let (mut missed, mut sum) = (0, 0);
    for number in 0..300 {
        let src_len = 20 + random.below(400);
        let src = random.input(src_len);
        let room = 1 + random.below(150);
        let mut dst = vec![0; room];
        let fit = high.compress_to_fit(&src, &mut dst);
        let farthest = (0..=src.len()).rev().find(|&len| shortest(&src[..len]) <= room).unwrap();
        assert!(
            fit.consumed <= farthest,
            "input {number}: {} cannot be, {farthest} is the most",
            fit.consumed
        );
        sum += farthest;
        missed += farthest - fit.consumed;
    }
    assert!(missed * 200 <= sum, "{missed} bytes of {sum} missed");
}

/// Whatever the encoder says, liblz4 reads it.
fn assert_round_trip(high: &mut High, src: &[u8], room: usize) {
    let mut dst = vec![0; src.len() + src.len() / 255 + 16];
    let written = high.compress(src, &mut dst).expect("as long as a block can be");
    let mut plain = vec![0; src.len()];
    assert_eq!(ffi::decompress(&dst[..written], &mut plain), Some(src.len()));
    assert!(plain == src);
    assert_eq!(high.compress(src, &mut vec![0; written]), Some(written));
    assert_eq!(high.compress(src, &mut vec![0; written - 1]), None);
    let fit = high.compress_to_fit(src, &mut dst[..room]);
    assert!(fit.written <= room && fit.consumed <= src.len());
    assert_eq!(ffi::decompress(&dst[..fit.written], &mut plain[..fit.consumed]).unwrap_or(0), fit.consumed);
    assert!(plain[..fit.consumed] == src[..fit.consumed]);
}

#[test]
fn random_inputs_round_trip() {
    let mut random = Noise(3);
    for level in [11, 12] {
        let mut high = High::new(level);
        for _ in 0..300 {
            let len = random.below(20_000);
            let src = random.input(len);
            let room = random.below(len + 1);
            assert_round_trip(&mut high, &src, room);
        }
        for len in 0..65 {
            for src in [random.input(len), vec![7; len]] {
                assert_round_trip(&mut high, &src, len / 2);
            }
        }
    }
}

#[test]
fn runs_and_patterns_round_trip_over_chunks_and_the_window() {
    let mut high = High::new(12);
    for period in [1, 2, 3, 4, 7, 8, 13, 255, 65_535, 65_536, 70_000] {
        let mut src: Vec<u8> = (0..600_000).map(|at| (at % period * 7 / 5) as u8).collect();
        let mut random = Noise(period as u64);
        assert_round_trip(&mut high, &src, 700);
        for _ in 0..300 {
            let at = random.below(src.len());
            src[at] = random.next() as u8;
        }
        assert_round_trip(&mut high, &src, 1500);
    }
    let noise: Vec<u8> = std::iter::repeat_with({
        let mut random = Noise(4);
        move || random.next() as u8
    })
    .take(300_000)
    .collect();
    assert_round_trip(&mut high, &noise, 100_000);
}

#[test]
fn programs_shrink_as_far_as_with_liblz4() {
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let mut dst = vec![0; 200_000];
    for level in [11, 12] {
        let (mut ours, mut theirs) = (0, 0);
        for block in program.chunks(128 << 10).take(16) {
            ours += High::new(level).compress(block, &mut dst).unwrap();
            theirs += ffi::HighState::new().compress(block, &mut dst, level.into()).unwrap();
        }
        assert!(ours <= theirs + theirs / 1000, "level {level}: {ours} bytes, {theirs} with liblz4");
    }
}

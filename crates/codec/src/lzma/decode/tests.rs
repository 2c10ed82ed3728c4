//! The loops against each other: all decode the same, whether a stream is sound or not.

use super::*;
use crate::lzma::coders::ffi::{Parameters, Stream};

struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }
}

/// Runs, copies from near and far, and noise.
fn data(noise: &mut Noise, len: usize) -> Vec<u8> {
    let mut data: Vec<u8> = Vec::new();
    while data.len() < len {
        match noise.below(4) {
            0 => data
                .extend((0..noise.below(40)).map(|_| (noise.next() & 0x1F) as u8 | 0x40).collect::<Vec<_>>()),
            1 => data.extend(vec![noise.next() as u8; noise.below(400)]),
            _ if data.is_empty() => data.push(0),
            _ => {
                let from = noise.below(data.len());
                let copied: Vec<u8> = data[from..].iter().copied().cycle().take(noise.below(300)).collect();
                data.extend(copied);
            }
        }
    }
    data.truncate(len);
    data
}

fn encode(plain: &[u8]) -> Vec<u8> {
    let mut stream = Stream::new();
    stream.start_lzma1_encoder(&mut Parameters::new(6, false, 1 << 20).unwrap()).unwrap();
    let mut packed = vec![0; plain.len() * 2 + 100];
    let len = stream.run(plain, &mut packed).dst_len;
    packed.truncate(len);
    packed
}

type Outcome = (Result<Stop, Fault>, Vec<u8>, usize);

fn decode_with(
    run: fn(&mut State, &mut RangeDecoder<'_>, &mut Window<'_>) -> Result<Stop, Fault>,
    packed: &[u8],
    limit: usize,
    cut: bool,
) -> Option<Outcome> {
    let mut state = State::new();
    state.reset(Properties::new(0x5D).unwrap());
    let mut rc = RangeDecoder::new(packed).ok()?;
    let mut dst = vec![0x5A; limit + 64];
    let mut window = Window { dst: &mut dst, len: 0, limit, dict_len: usize::MAX, cut };
    let result = run(&mut state, &mut rc, &mut window);
    let len = window.len;
    assert!(len <= limit);
    assert!(dst[limit..].iter().all(|&byte| byte == 0x5A), "wrote beyond the limit");
    dst.truncate(len);
    Some((result, dst, rc.at))
}

/// Decodes with every loop, and returns what they agree on.
fn decode_with_all(packed: &[u8], limit: usize, cut: bool) -> Option<Outcome> {
    let native = decode_with(State::decode, packed, limit, cut);
    let portable = decode_with(State::decode_by::<fast::Portable>, packed, limit, cut);
    let careful = decode_with(State::decode_carefully, packed, limit, cut);
    assert!(native == portable, "{} bytes, limit {limit}", packed.len());
    assert!(native == careful, "{} bytes, limit {limit}", packed.len());
    native
}

#[test]
fn all_loops_decode_what_liblzma_encodes() {
    let mut noise = Noise(1);
    for len in (0..70).chain((1..40).map(|step| step * 977)) {
        let plain = data(&mut noise, len);
        let packed = encode(&plain);
        let (result, decoded, _) = decode_with_all(&packed, len, false).unwrap();
        assert_eq!(result, Ok(Stop::Limit));
        assert!(decoded == plain, "{len}");
        let limit = noise.below(len + 1);
        let (result, decoded, _) = decode_with_all(&packed, limit, true).unwrap();
        assert_eq!(result, Ok(Stop::Limit));
        assert!(decoded == plain[..limit], "{limit} of {len}");
    }
}

#[test]
fn all_loops_find_the_same_damage_at_the_same_place() {
    let mut noise = Noise(2);
    let mut faults = 0;
    for _ in 0..300 {
        let len = 200 + noise.below(6000);
        let packed = encode(&data(&mut noise, len));
        for _ in 0..10 {
            let mut damaged = packed.clone();
            for _ in 0..1 + noise.below(3) {
                let at = 1 + noise.below(packed.len() - 1);
                damaged[at] = noise.next() as u8;
            }
            damaged.truncate(5 + noise.below(packed.len() - 4));
            let outcome = decode_with_all(&damaged, len * 2, noise.below(2) == 0);
            faults += usize::from(outcome.is_none_or(|(result, ..)| result.is_err()));
        }
    }
    assert!(faults > 1000, "{faults}");
}

#[test]
fn all_loops_take_garbage_alike() {
    let mut noise = Noise(3);
    for _ in 0..2000 {
        let garbage: Vec<u8> = std::iter::once(0).chain((0..400).map(|_| noise.next() as u8)).collect();
        decode_with_all(&garbage, noise.below(5000), false);
    }
}

#[test]
fn copies_reach_no_further_than_the_dictionary() {
    let mut noise = Noise(4);
    // Nothing repeats but the first 300 bytes, 5000 further on.
    let mut plain: Vec<u8> = (0..5000).map(|_| noise.next() as u8).collect();
    plain.extend_from_within(..300);
    let packed = encode(&plain);
    let decode = |dict_len: usize| {
        let mut state = State::new();
        state.reset(Properties::new(0x5D).unwrap());
        let mut dst = vec![0; plain.len()];
        let mut window = Window { limit: dst.len(), dst: &mut dst, len: 0, dict_len, cut: false };
        state.decode(&mut RangeDecoder::new(&packed).unwrap(), &mut window)
    };
    assert_eq!(decode(5000), Ok(Stop::Limit));
    assert_eq!(decode(4999), Err(Fault::Damaged));
}

#[test]
fn all_loops_know_the_same_after_thousands_of_damaged_streams() {
    let mut noise = Noise(5);
    let streams: Vec<Vec<u8>> = (0..40).map(|step| encode(&data(&mut noise, 100 + step * 60))).collect();
    let mut sound = 0;
    for _ in 0..4000 {
        let mut packed = streams[noise.below(streams.len())].clone();
        for _ in 0..noise.below(4) {
            let at = 1 + noise.below(packed.len() - 1);
            match noise.below(3) {
                0 => packed[at] ^= 1 << noise.below(8),
                1 => packed[at] = noise.next() as u8,
                _ => packed.truncate(at + 1),
            }
            if packed.len() < 6 {
                break;
            }
        }
        // Most often the figures that the stream was made with: with others it is noise.
        let byte = if noise.below(3) == 0 { noise.below(225) as u8 } else { 0x5D };
        let Some(properties) = Properties::new(byte) else { continue };
        let end = noise.below(6000);
        let limits = [noise.below(end + 1), end];
        let dict_len = [usize::MAX, 4096, 100][noise.below(3)];
        let found = compare::loops(&packed, properties, &limits, dict_len);
        let known = found.unwrap_or_else(|| panic!("{packed:?} {byte} {limits:?} {dict_len}"));
        sound += usize::from(!known.contains("Err"));
    }
    assert!((100..3900).contains(&sound), "{sound}");
}

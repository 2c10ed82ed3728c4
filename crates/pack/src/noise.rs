//! Whether compressing could be worth its while, told before it is tried: from how often each value
//! occurs, and from whether anything occurs twice.
//!
//! Deterministic, and a fraction of the cost of the fastest encoder: bytes that are not spread
//! evenly, which is what nearly all data is, are told by a few kilobytes of them.

/// Shorter runs say nothing.
const LEN_MIN: usize = 256;
/// Stretches of a block that are looked at first, and their length.
const SAMPLES: usize = 16;
const SAMPLE_LEN: usize = 256;
/// Shortest block of which the cheap look is enough reason not to look at all of it.
const SAMPLED_LEN_MIN: usize = 4 * SAMPLES * SAMPLE_LEN;

/// A tenth more than even spread, in percent: no gain to speak of.
const NEARLY_EVEN: u64 = 110;
/// What JPEG, Vorbis and their like have, in percent: of 340 blocks below it, XZ took 3 % or more
/// off two.
const EVEN_ENOUGH: u64 = 115;

/// What hardly compresses has less, in percent: beyond it an encoder that counts values takes a few
/// percent off.
const UNEVEN: u64 = 160;

/// Length of the runs that are looked for twice.
const RUN_LEN: usize = 6;
/// One run in so many counts.
const RUNS_SAMPLED: u32 = 8;
/// At least one counted run in so many occurs twice where compressing pays.
const REPEATS_MIN: usize = 64;

/// Whether the values are spread as evenly as those of compressed or encrypted data. Blind to
/// repetitions: who asks must try the real encoder now and then.
pub(crate) fn values_are_even(bytes: &[u8]) -> bool {
    bytes.len() >= LEN_MIN && Counts::of(bytes).is_even(NEARLY_EVEN)
}

/// What the values of a block tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// No encoder would take a few percent off it.
    Noise,
    /// Not so even that it must be noise, nor so uneven that something must come off it.
    Open,
    /// An encoder that counts values takes something off it.
    Uneven,
}

/// Whether a block is so much like noise that no encoder would take a few percent off it.
pub(crate) fn is_noise(bytes: &[u8]) -> bool {
    look(bytes) == Look::Noise
}

/// Looks at a block.
pub(crate) fn look(bytes: &[u8]) -> Look {
    if bytes.len() < SAMPLED_LEN_MIN {
        let is_noise = values_are_even(bytes) && !repeats(bytes);
        return if is_noise { Look::Noise } else { Look::Uneven };
    }
    let mut sampled = Counts::new();
    for sample in 0..SAMPLES {
        let at = (bytes.len() - SAMPLE_LEN) * sample / (SAMPLES - 1);
        sampled.add(&bytes[at..at + SAMPLE_LEN]);
    }
    // A few kilobytes scatter more than all of them.
    if sampled.is_even(EVEN_ENOUGH + 5) && Counts::of(bytes).is_even(EVEN_ENOUGH) && !repeats(bytes) {
        return Look::Noise;
    }
    if sampled.is_even(UNEVEN) { Look::Open } else { Look::Uneven }
}

/// How often each value occurs. Two tables: equal neighbours would otherwise wait for each other.
struct Counts {
    tables: [[u32; 256]; 2],
    len: u64,
}

impl Counts {
    fn new() -> Self {
        Counts { tables: [[0; 256]; 2], len: 0 }
    }

    fn of(bytes: &[u8]) -> Self {
        let mut counts = Counts::new();
        counts.add(bytes);
        counts
    }

    fn add(&mut self, bytes: &[u8]) {
        for pair in bytes.chunks_exact(2) {
            self.tables[0][usize::from(pair[0])] += 1;
            self.tables[1][usize::from(pair[1])] += 1;
        }
        self.len += (bytes.len() & !1) as u64;
    }

    /// Whether two values are alike at most `percent` as often as with even spread, which gives n +
    /// n(n-1)/256 on average, with little deviation.
    fn is_even(&self, percent: u64) -> bool {
        let [even, odd] = &self.tables;
        let squares: u64 = even.iter().zip(odd).map(|(a, b)| u64::from(a + b).pow(2)).sum();
        let expected = self.len + self.len * self.len.saturating_sub(1) / 256;
        u128::from(squares) * 100 < u128::from(expected) * u128::from(percent)
    }
}

/// Whether so much occurs twice that an encoder of long matches would gain from it. Which runs
/// count depends on their bytes alone, so that what occurs again is counted again.
fn repeats(bytes: &[u8]) -> bool {
    const SLOTS_LOG: u32 = 14;
    // The hash of the last run that came by, whole, so that nothing is taken for a repetition that
    // is none.
    let mut slots = vec![0_u32; 1 << SLOTS_LOG];
    let (mut counted, mut twice) = (0_usize, 0_usize);
    for run in bytes.windows(8) {
        let run = run.first_chunk::<8>().map_or(0, |run| u64::from_le_bytes(*run)) << (64 - 8 * RUN_LEN);
        let hash = run.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash >> 32) as u32;
        if hash >> 24 >= 256 / RUNS_SAMPLED {
            continue;
        }
        counted += 1;
        let slot = &mut slots[(hash & ((1 << SLOTS_LOG) - 1)) as usize];
        twice += usize::from(*slot == hash && hash != 0);
        *slot = hash;
    }
    twice * REPEATS_MIN > counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_testkit::Random;

    #[test]
    fn tells_noise_from_text_and_from_almost_noise() {
        let mut random = Random::new(1);
        for len in [256, 512, 4096, 65_537, 1 << 20] {
            let noise = random.noise(len);
            let text = random.text(len);
            let seven_bits: Vec<u8> = random.noise(len).iter().map(|byte| byte & 0x7f).collect();
            for tells in [values_are_even, is_noise] {
                assert!(tells(&noise), "{len}");
                assert!(!tells(&text), "{len}");
                assert!(!tells(&seven_bits), "{len}");
            }
        }
        assert!(!is_noise(&random.noise(255)));
    }

    #[test]
    fn noise_that_comes_twice_is_none() {
        let mut random = Random::new(2);
        let once = random.noise(20_000);
        let twice = [&once[..], &random.noise(1_001), &once].concat();
        assert!(values_are_even(&twice));
        assert!(!is_noise(&twice));
        // A hundredth of it does not pay.
        assert!(is_noise(&[&random.noise(100_000)[..], &once[..20_000], &once[..600]].concat()));
    }

    #[test]
    fn a_part_that_is_text_is_seen_wherever_it_is() {
        let mut random = Random::new(3);
        let (noise, text) = (random.noise(100_000), random.text(30_000));
        assert!(!is_noise(&[&noise[..], &text].concat()));
        assert!(!is_noise(&[&text[..], &noise].concat()));
    }
}

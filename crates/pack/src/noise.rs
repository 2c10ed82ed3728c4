//! Detects incompressible data before an encoder tries it, from the frequency of byte values and
//! from repetitions.
//!
//! Deterministic, and far cheaper than the fastest encoder: a few kilobytes show that values are
//! uneven, as in nearly all data.

/// Shorter runs are not significant.
const LEN_MIN: usize = 256;
/// Samples of a block that are examined first, and their length.
const SAMPLES: usize = 16;
const SAMPLE_LEN: usize = 256;
/// Shortest block for which uneven samples make a full count unnecessary.
const SAMPLED_LEN_MIN: usize = 4 * SAMPLES * SAMPLE_LEN;

/// Percent of an even distribution: a tenth more offers no gain.
const NEARLY_EVEN: u64 = 110;
/// Upper bound of JPEG, Vorbis and similar data, in percent; of 340 blocks below it, XZ saved 3 %
/// or more on two.
const EVEN_ENOUGH: u64 = 115;

/// Upper bound of nearly incompressible data, in percent; above it, an entropy coder saves a few
/// percent.
const UNEVEN: u64 = 160;

const RUN_LEN: usize = 6;
/// One run in `RUNS_SAMPLED` is counted.
const RUNS_SAMPLED: u32 = 8;
/// Compressing pays if at least one counted run in `REPEATS_MIN` occurs twice.
const REPEATS_MIN: usize = 64;

/// Returns true if byte values are as evenly distributed as in compressed or encrypted data.
/// Repetitions are not seen, so the caller must try the encoder at intervals.
pub(crate) fn values_are_even(bytes: &[u8]) -> bool {
    bytes.len() >= LEN_MIN && Counts::of(bytes).is_even(NEARLY_EVEN)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Estimate {
    Noise,
    Open,
    Uneven,
}

/// True if no encoder would save a few percent.
pub(crate) fn is_noise(bytes: &[u8]) -> bool {
    estimate(bytes) == Estimate::Noise
}

pub(crate) fn estimate(bytes: &[u8]) -> Estimate {
    if bytes.len() < SAMPLED_LEN_MIN {
        let is_noise = values_are_even(bytes) && !repeats(bytes);
        return if is_noise { Estimate::Noise } else { Estimate::Uneven };
    }
    let mut sampled = Counts::new();
    for sample in 0..SAMPLES {
        let at = (bytes.len() - SAMPLE_LEN) * sample / (SAMPLES - 1);
        sampled.add(&bytes[at..at + SAMPLE_LEN]);
    }
    // Samples vary more than the whole block.
    if sampled.is_even(EVEN_ENOUGH + 5) && Counts::of(bytes).is_even(EVEN_ENOUGH) && !repeats(bytes) {
        return Estimate::Noise;
    }
    if sampled.is_even(UNEVEN) { Estimate::Open } else { Estimate::Uneven }
}

/// Frequency of each value. Two tables, because increments of equal neighbors would wait for each
/// other.
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

    /// Returns true if two values are equal at most `percent` as often as in an even distribution,
    /// where the average is n + n(n-1)/256, with little deviation.
    fn is_even(&self, percent: u64) -> bool {
        let [even, odd] = &self.tables;
        let squares: u64 = even.iter().zip(odd).map(|(a, b)| u64::from(a + b).pow(2)).sum();
        let expected = self.len + self.len * self.len.saturating_sub(1) / 256;
        u128::from(squares) * 100 < u128::from(expected) * u128::from(percent)
    }
}

/// Returns true if enough data recurs for an encoder with long matches. Runs are sampled by
/// content, so that repetitions are sampled too.
fn repeats(bytes: &[u8]) -> bool {
    const SLOTS_LOG: u32 = 14;
    // The full hash of the last run in each slot, to avoid false repetitions.
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
    fn distinguishes_noise_from_text_and_near_noise() {
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
    fn repeated_noise_is_compressible() {
        let mut random = Random::new(2);
        let once = random.noise(20_000);
        let twice = [&once[..], &random.noise(1_001), &once].concat();
        assert!(values_are_even(&twice));
        assert!(!is_noise(&twice));
        // A hundredth of repeated data does not pay.
        assert!(is_noise(&[&random.noise(100_000)[..], &once[..20_000], &once[..600]].concat()));
    }

    #[test]
    fn finds_text_anywhere_in_noise() {
        let mut random = Random::new(3);
        let (noise, text) = (random.noise(100_000), random.text(30_000));
        assert!(!is_noise(&[&noise[..], &text].concat()));
        assert!(!is_noise(&[&text[..], &noise].concat()));
    }
}

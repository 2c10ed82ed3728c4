//! Random figures that are the same each time.

use super::Nanos;

/// What SplitMix64 goes on by: odd, and as far from any pattern as the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What SplitMix64 tells at this state: a number that has nothing to do with its neighbours'.
pub(crate) fn mix(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        let mixed = mix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        mixed
    }

    /// Evenly from 0 to 1.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Evenly from 0 to `end`.
    pub(super) fn below(&mut self, end: Nanos) -> Nanos {
        (end as f64 * self.part()) as Nanos
    }

    /// `time`, longer or shorter by up to `jitter` of it.
    pub(super) fn vary(&mut self, time: Nanos, jitter: f64) -> Nanos {
        if jitter <= 0.0 {
            return time;
        }
        (time as f64 * (1.0 + jitter * (2.0 * self.part() - 1.0))) as Nanos
    }
}

//! Numbers drawn by lot, the same from the same seed on every machine.

/// The step of SplitMix64: odd, and as far from any pattern as the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the number of SplitMix64 at a state, which has nothing to do with its neighbours'.
pub fn mix(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014), by its
/// seed.
pub struct Random(pub u64);

impl Random {
    /// Returns the next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "the numbers never end")]
    pub fn next(&mut self) -> u64 {
        let mixed = mix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        mixed
    }

    /// Returns a number from 0 up to 1, which is never reached.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number less than `bound`, or 0. The quotient favours 1 in 2^64 / bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns `time`, longer or shorter by up to `jitter` of it.
    pub fn vary(&mut self, time: u64, jitter: f64) -> u64 {
        if jitter <= 0.0 {
            return time;
        }
        (time as f64 * (1.0 + jitter * (2.0 * self.fraction() - 1.0))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_seed_draws_stays_what_it_is() {
        // The first numbers of SplitMix64 from 0, as its authors have them.
        let mut random = Random(0);
        assert_eq!([random.next(), random.next()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        assert!((0..1000).all(|_| random.below(10) < 10));
        assert!((0..1000).map(|_| random.fraction()).all(|part| (0.0..1.0).contains(&part)));
    }
}

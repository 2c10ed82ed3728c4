//! Random numbers that are equal on every machine and in every release: SplitMix64.
//!
//! Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014.

pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(end);
        (wide >> 64) as u64
    }

    /// Returns a length in `least..=most`, distributed like those of real files: most near
    /// `middle`, few far above.
    ///
    /// The distribution is log-normal. The sum of twelve uniform numbers replaces a normal one, so
    /// that rounding is equal everywhere.
    pub fn file_len(&mut self, middle: u64, least: u64, most: u64) -> u64 {
        // Unit: 1/16 of a doubling; a standard deviation is 1.5 doublings.
        let sum: u64 = (0..12).map(|_| self.below(24)).sum();
        let sixteenths = sum as i64 - 6 * 23;
        let doublings = sixteenths.div_euclid(16);
        let rest = sixteenths.rem_euclid(16) as u64;
        // Linear between two powers of two, which is close enough.
        let scaled = middle * (16 + rest);
        let len = if doublings >= 0 { (scaled << doublings) / 16 } else { (scaled >> -doublings) / 16 };
        len.clamp(least, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_the_published_sequence() {
        let mut random = Random::new(1_234_567);
        let drawn = [random.next(), random.next(), random.next()];
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn draws_below_the_end() {
        let mut random = Random::new(7);
        assert!((0..1000).all(|_| random.below(10) < 10));
    }

    #[test]
    fn spreads_lengths_around_the_middle_within_the_limits() {
        let mut random = Random::new(7);
        let mut lens: Vec<_> = (0..10_001).map(|_| random.file_len(1500, 100, 16384)).collect();
        lens.sort_unstable();
        assert!((1300..1700).contains(&lens[5000]), "median {}", lens[5000]);
        assert!(lens[0] >= 100 && lens[10_000] <= 16384);
        assert!(lens[500] < 500 && lens[9_500] > 4500, "{} {}", lens[500], lens[9_500]);
    }
}

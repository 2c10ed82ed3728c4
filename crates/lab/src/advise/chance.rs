//! Choices that look random and are the same for the same seed (SplitMix64; Steele, Lea, Flood, 2014).

/// A sequence of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The sequence of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Chance(seed)
    }

    /// The next number, of all there are.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next number from 0 up to 1, which is never reached.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

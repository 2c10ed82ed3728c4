//! Drawing by lot, the same from the same seed on every machine.

/// Every order is as likely as any other, as far as 64 bits of seed go (Fisher and Yates).
pub(crate) fn shuffled<T>(mut items: Vec<T>, seed: u64) -> Vec<T> {
    let mut random = Random(seed);
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last as u64 + 1) as usize);
    }
    items
}

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to 1, which is never reached.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Less than `bound`, which is not 0. What the quotient favours is 1 in 2^64 / bound.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
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
        assert!((0..1000).map(|_| random.fraction()).all(|part| (0.0..1.0).contains(&part)));
    }

    #[test]
    fn the_same_seed_draws_the_same_order_and_another_one_another() {
        let items: Vec<u32> = (0..1000).collect();
        let first = shuffled(items.clone(), 7);
        assert_eq!(first, shuffled(items.clone(), 7));
        assert_ne!(first, shuffled(items.clone(), 8));
        let mut sorted = first;
        sorted.sort_unstable();
        assert_eq!(sorted, items);
    }
}

//! Drawing by lot, the same from the same seed on every machine.

pub(crate) use packfs_host::Random;

/// Every order is as likely as any other, as far as 64 bits of seed go (Fisher and Yates).
pub(crate) fn shuffled<T>(mut items: Vec<T>, seed: u64) -> Vec<T> {
    let mut random = Random(seed);
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last as u64 + 1) as usize);
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

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

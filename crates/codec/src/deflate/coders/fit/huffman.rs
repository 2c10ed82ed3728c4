//! Canonical prefix codes of limited length.

pub(super) const CODE_LEN_MAX: usize = 15;

/// Computes code lengths from symbol counts; 0 for unused symbols. A single symbol gets a code of
/// one bit, and so does its neighbor, as some decoders require complete codes.
pub(super) fn code_lens(counts: &[u32], len_max: usize, lens: &mut [u8]) {
    lens.fill(0);
    let mut used: Vec<(u32, u16)> = counts
        .iter()
        .zip(0u16..)
        .filter(|(count, _)| **count > 0)
        .map(|(&count, symbol)| (count, symbol))
        .collect();
    if used.len() < 2 {
        if let Some(&(_, symbol)) = used.first() {
            lens[usize::from(symbol)] = 1;
            lens[usize::from(symbol == 0)] = 1;
        }
        return;
    }
    used.sort_unstable();
    let depths = depths(&used);
    let mut counts_of_len = [0usize; 64];
    for &depth in &depths {
        counts_of_len[usize::from(depth).min(len_max)] += 1;
    }
    shorten(&mut counts_of_len, len_max);
    // The rarest symbols get the longest codes.
    let mut rarest = used.iter();
    for len in (1..=len_max).rev() {
        for &(_, symbol) in rarest.by_ref().take(counts_of_len[len]) {
            lens[usize::from(symbol)] = len as u8;
        }
    }
}

/// Depths of the leaves of Huffman's tree, for at least two counts in ascending order.
fn depths(used: &[(u32, u16)]) -> Vec<u8> {
    let leaf_count = used.len();
    let mut weights: Vec<u64> = Vec::with_capacity(leaf_count);
    // Leaves first, then inner nodes in the order of creation, which is that of their weights.
    let mut parents = vec![0usize; 2 * leaf_count - 1];
    let (mut leaf, mut inner) = (0, 0);
    for made in 0..leaf_count - 1 {
        let mut weight = 0;
        for _ in 0..2 {
            let take_leaf = match (used.get(leaf), weights.get(inner)) {
                (Some(&(count, _)), Some(&inner_weight)) => u64::from(count) <= inner_weight,
                (leaf, _) => leaf.is_some(),
            };
            if take_leaf {
                weight += u64::from(used[leaf].0);
                parents[leaf] = leaf_count + made;
                leaf += 1;
            } else {
                weight += weights[inner];
                parents[leaf_count + inner] = leaf_count + made;
                inner += 1;
            }
        }
        weights.push(weight);
    }
    let mut depths = vec![0u8; 2 * leaf_count - 1];
    for node in (0..2 * leaf_count - 2).rev() {
        depths[node] = depths[parents[node]] + 1;
    }
    depths.truncate(leaf_count);
    depths
}

/// Repairs a code whose lengths were limited to `len_max`: lengthens shorter codes until the code
/// is valid.
fn shorten(counts_of_len: &mut [usize; 64], len_max: usize) {
    let space = 1usize << len_max;
    let mut taken: usize = (1..=len_max).map(|len| counts_of_len[len] << (len_max - len)).sum();
    while taken > space {
        // A code of the next shorter length becomes one bit longer, which makes room for one of the
        // longest.
        let Some(len) = (1..len_max).rev().find(|&len| counts_of_len[len] > 0) else { return };
        counts_of_len[len] -= 1;
        counts_of_len[len + 1] += 2;
        counts_of_len[len_max] -= 1;
        taken -= 1;
    }
}

/// Assigns codes to these lengths, with bits in the order in which DEFLATE writes them.
pub(super) fn codes(lens: &[u8], codes: &mut [u16]) {
    let mut next = [0u32; CODE_LEN_MAX + 2];
    for &len in lens {
        next[usize::from(len) + 1] += u32::from(len > 0);
    }
    // So far each entry counts the codes that are one bit shorter; now it becomes the first code of
    // its length.
    let mut first = 0;
    for entry in &mut next {
        first = (first + *entry) << 1;
        *entry = first;
    }
    for (code, &len) in codes.iter_mut().zip(lens) {
        if len > 0 {
            let straight = next[usize::from(len)];
            next[usize::from(len)] += 1;
            *code = (straight as u16).reverse_bits() >> (16 - len);
        }
    }
}

#[derive(Default)]
pub(super) struct DecodeTable {
    entries: Vec<u16>,
    bits: u32,
}

impl DecodeTable {
    /// Fills the table for a complete or single code.
    pub(super) fn build(&mut self, lens: &[u8]) {
        let mut all = [0u16; super::symbols::LITLEN_COUNT];
        codes(lens, &mut all);
        self.bits = u32::from(lens.iter().copied().max().unwrap_or(0)).max(1);
        self.entries.clear();
        self.entries.resize(1 << self.bits, 0);
        for ((&len, &code), symbol) in lens.iter().zip(&all).zip(0u16..) {
            if len > 0 {
                let entry = symbol << 4 | u16::from(len);
                self.entries[usize::from(code)..].iter_mut().step_by(1 << len).for_each(|slot| *slot = entry);
            }
        }
    }

    #[inline]
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the symbol and its code length; length 0 for an invalid code.
    #[inline]
    pub(super) fn find(&self, bits: u32) -> (usize, u32) {
        let entry = self.entries.get(bits as usize).copied().unwrap_or(0);
        (usize::from(entry >> 4), u32::from(entry & 15))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kraft(lens: &[u8]) -> f64 {
        lens.iter().filter(|&&len| len > 0).map(|&len| 0.5f64.powi(len.into())).sum()
    }

    #[test]
    fn codes_are_complete_within_the_limit_even_for_steep_counts() {
        let mut fibonacci = vec![1u32, 1];
        while fibonacci.len() < 40 {
            fibonacci.push(fibonacci[fibonacci.len() - 1] + fibonacci[fibonacci.len() - 2]);
        }
        for (counts, len_max) in
            [(fibonacci.clone(), 15), (fibonacci[..19].to_vec(), 7), (vec![7; 19], 7), (vec![0, 3, 0, 1], 7)]
        {
            let mut lens = vec![0; counts.len()];
            code_lens(&counts, len_max, &mut lens);
            assert!(lens.iter().all(|&len| usize::from(len) <= len_max));
            assert!(counts.iter().zip(&lens).all(|(&count, &len)| (count > 0) == (len > 0)));
            assert_eq!(kraft(&lens), 1.0, "{lens:?}");
            let mut order: Vec<_> = counts.iter().zip(&lens).filter(|(count, _)| **count > 0).collect();
            order.sort();
            assert!(order.windows(2).all(|pair| pair[0].1 >= pair[1].1 || pair[0].0 == pair[1].0));
        }
    }

    #[test]
    fn single_symbols_get_a_complete_code() {
        for symbol in [0, 5] {
            let mut counts = [0; 19];
            counts[symbol] = 3;
            let mut lens = [0; 19];
            code_lens(&counts, 7, &mut lens);
            assert_eq!((lens[symbol], kraft(&lens)), (1, 1.0));
        }
    }

    #[test]
    fn codes_of_the_example_in_rfc_1951_section_3_2_2() {
        let lens = [3, 3, 3, 3, 3, 2, 4, 4];
        let mut all = [0; 8];
        codes(&lens, &mut all);
        let straight: Vec<u16> =
            all.iter().zip(lens).map(|(code, len)| code.reverse_bits() >> (16 - len)).collect();
        assert_eq!(straight, [0b010, 0b011, 0b100, 0b101, 0b110, 0b00, 0b1110, 0b1111]);
        let mut table = DecodeTable::default();
        table.build(&lens);
        for (symbol, (&code, &len)) in all.iter().zip(&lens).enumerate() {
            assert_eq!(table.find(code.into()), (symbol, len.into()));
        }
    }
}

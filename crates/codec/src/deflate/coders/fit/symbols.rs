//! Lengths and distances as symbols with extra bits (RFC 1951, 3.2.5), and tokens of a parse.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// 3 to 258 for a match, 0 for a literal.
    pub(super) len: u16,
    /// The distance of a match minus 1, or the literal byte.
    pub(super) value: u16,
}

impl Token {
    pub(super) fn plain_len(self) -> usize {
        usize::from(self.len.max(1))
    }
}

pub(super) const LITLEN_COUNT: usize = 288;
pub(super) const DISTANCE_COUNT: usize = 30;
pub(super) const END_OF_BLOCK: usize = 256;

/// First length of each symbol from 257 on.
pub(super) const LEN_BASES: [u16; 29] = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
    227, 258,
];
pub(super) const LEN_EXTRA_BITS: [u8; 29] =
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];

/// Symbol of every length, minus 257, by length minus 3.
static LEN_SYMBOLS: [u8; 256] = len_symbols();

const fn len_symbols() -> [u8; 256] {
    let mut symbols = [0; 256];
    let mut len = 3;
    let mut symbol = 0;
    while len <= 258 {
        if symbol + 1 < LEN_BASES.len() && LEN_BASES[symbol + 1] as usize == len {
            symbol += 1;
        }
        symbols[len - 3] = symbol as u8;
        len += 1;
    }
    symbols
}

/// Index into the length tables, 0 for symbol 257.
#[inline]
pub(super) fn len_index(len: u16) -> usize {
    LEN_SYMBOLS[usize::from(len.saturating_sub(3)) & 255].into()
}

#[inline]
pub(super) fn distance_extra_bits(symbol: usize) -> u32 {
    (symbol as u32 / 2).saturating_sub(1)
}

/// First distance of a symbol, minus 1.
#[inline]
pub(super) fn distance_base(symbol: usize) -> u16 {
    match symbol {
        0..4 => symbol as u16,
        _ => (2 + (symbol as u16 & 1)) << distance_extra_bits(symbol),
    }
}

/// Symbol of a distance minus 1.
#[inline]
pub(super) fn distance_symbol(value: u16) -> usize {
    if value < 4 {
        return value.into();
    }
    let high_bit = 15 - value.leading_zeros() as usize;
    high_bit * 2 + usize::from(value >> (high_bit - 1) & 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_distance_is_base_plus_extra_bits() {
        for len in 3..=258 {
            let index = len_index(len);
            assert!(len >= LEN_BASES[index] && len - LEN_BASES[index] < 1 << LEN_EXTRA_BITS[index], "{len}");
        }
        for value in 0..32_768 {
            let symbol = distance_symbol(value);
            assert!(symbol < DISTANCE_COUNT);
            let extra = value - distance_base(symbol);
            assert!(extra < 1 << distance_extra_bits(symbol), "{value}");
        }
    }
}

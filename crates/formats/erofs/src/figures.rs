//! Arithmetic on unchecked fields, with saturation: no file is so long that it reaches the largest
//! number, so reading there is refused.

/// Start of unit `index`, of units of length `len` from `start` on.
pub(crate) fn nth_at(start: u64, index: u64, len: u64) -> u64 {
    start.saturating_add(index.saturating_mul(len))
}

/// `bits` is less than 64.
pub(crate) fn low_bits(bits: u32) -> u64 {
    !(u64::MAX << bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_beyond_all_numbers_are_the_largest_number() {
        assert_eq!(nth_at(8, 3, 4), 20);
        assert_eq!(nth_at(8, u64::MAX, 4), u64::MAX);
        assert_eq!(nth_at(u64::MAX, 1, 1), u64::MAX);
    }

    #[test]
    fn low_bits_are_those_below() {
        assert_eq!((low_bits(0), low_bits(1), low_bits(48)), (0, 1, 0xffff_ffff_ffff));
    }
}

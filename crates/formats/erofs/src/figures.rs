//! Masks of bits.

/// `bits` is less than 64.
pub(crate) fn low_bits(bits: u32) -> u64 {
    !(u64::MAX << bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_bits_are_those_below() {
        assert_eq!((low_bits(0), low_bits(1), low_bits(48)), (0, 1, 0xffff_ffff_ffff));
    }
}

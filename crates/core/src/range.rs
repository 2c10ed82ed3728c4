//! Lengths and ranges of bytes computed from values of an input, without overflow or truncation.

use std::ops::Range;

/// Returns the range of `len` bytes from `start` on, cut off at `u64::MAX`, where no image has
/// bytes.
pub const fn range_at(start: u64, len: u64) -> Range<u64> {
    start..start.saturating_add(len)
}

/// Returns the number of bytes of a range; 0 if it ends before its start.
pub const fn len_of(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// Cuts a range into parts of `len` bytes, of which the last may be shorter. `len` is not 0.
pub fn parts_of(range: Range<u64>, len: u64) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range.step_by(usize_of(len)).map(move |start| start..end.min(start.saturating_add(len)))
}

/// Returns the start of the block around an offset; blocks of length 0 begin everywhere.
pub const fn round_down(at: u64, block_len: u64) -> u64 {
    match block_len {
        0 => at,
        _ => at - at % block_len,
    }
}

/// Returns the numbers of the blocks of `block_len` bytes that a range touches; empty if
/// `block_len` is 0.
pub const fn blocks_of(range: &Range<u64>, block_len: u64) -> Range<u64> {
    match block_len {
        0 => 0..0,
        _ => range.start / block_len..range.end.div_ceil(block_len),
    }
}

/// Converts a number of bytes, saturated on machines that cannot address so many: an allocation
/// then fails instead of being too short.
pub const fn usize_of(len: u64) -> usize {
    if size_of::<usize>() < size_of::<u64>() && len > usize::MAX as u64 { usize::MAX } else { len as usize }
}

/// Converts a number to 32 bits, saturated: such a count is then refused.
pub const fn u32_of(len: u64) -> u32 {
    if len > u32::MAX as u64 { u32::MAX } else { len as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_off_instead_of_overflowing() {
        assert_eq!(range_at(512, 100), 512..612);
        assert_eq!(range_at(u64::MAX - 1, 100), u64::MAX - 1..u64::MAX);
        assert_eq!(len_of(&(512..612)), 100);
        assert_eq!(len_of(&Range { start: 612, end: 512 }), 0);
        assert_eq!(parts_of(100..350, 100).collect::<Vec<_>>(), [100..200, 200..300, 300..350]);
    }

    #[test]
    fn blocks_without_length_divide_nothing() {
        assert_eq!(round_down(4097, 4096), 4096);
        assert_eq!(round_down(4097, 0), 4097);
        assert_eq!(blocks_of(&(100..4097), 4096), 0..2);
        assert_eq!(blocks_of(&(100..4097), 0), 0..0);
    }

    #[test]
    fn numbers_that_do_not_fit_are_the_greatest() {
        assert_eq!(usize_of(4096), 4096);
        assert_eq!(u32_of(4096), 4096);
        assert_eq!(u32_of(1 << 40), u32::MAX);
    }
}

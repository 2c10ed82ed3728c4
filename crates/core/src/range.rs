//! Ranges of bytes whose ends are computed from figures of an input, without an overflow.

use std::ops::Range;

/// Returns the range of `len` bytes from `start` on; it ends at `u64::MAX` if it would end after
/// that, where no image has bytes.
///
/// # Examples
///
/// ```
/// assert_eq!(packfs_core::range_at(512, 100), 512..612);
/// assert_eq!(packfs_core::range_at(u64::MAX - 1, 100), u64::MAX - 1..u64::MAX);
/// ```
pub const fn range_at(start: u64, len: u64) -> Range<u64> {
    start..start.saturating_add(len)
}

/// Returns the number of bytes of a range, 0 if it ends before its start.
///
/// # Examples
///
/// ```
/// assert_eq!(packfs_core::len_of(&(512..612)), 100);
/// ```
pub const fn len_of(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

//! Ranges of bytes whose ends are computed from figures of an input, without an overflow.

use crate::usize_of;
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

/// Cuts a range into parts of `len` bytes, the last of which may be shorter. `len` is not 0.
///
/// # Examples
///
/// ```
/// let parts: Vec<_> = packfs_core::parts_of(100..350, 100).collect();
/// assert_eq!(parts, [100..200, 200..300, 300..350]);
/// ```
pub fn parts_of(range: Range<u64>, len: u64) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range.step_by(usize_of(len)).map(move |start| start..end.min(start.saturating_add(len)))
}

/// Returns the numbers of the blocks of `block_len` bytes that a range touches; none if blocks have
/// no length.
///
/// # Examples
///
/// ```
/// assert_eq!(packfs_core::blocks_of(&(100..4097), 4096), 0..2);
/// ```
pub const fn blocks_of(range: &Range<u64>, block_len: u64) -> Range<u64> {
    match block_len {
        0 => 0..0,
        _ => range.start / block_len..range.end.div_ceil(block_len),
    }
}

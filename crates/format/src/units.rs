//! Arithmetic on figures that an image stores.
//!
//! The bound of a figure decides its arithmetic:
//!
//! - No check has bounded it, and an address or a length is computed: `checked_add` and its like,
//!   with a row of [`faults!`](crate::faults!) for `None`.
//! - It is only compared, or read at: [`end_of`], [`nth_at`], and [`left`], right for all values.
//! - A check, or the width of its field, has bounded it: [`Exact`]. Debug builds assert that, and
//!   the tests of damaged images run these.

use std::slice::SliceIndex;

/// Returns the end of `len` bytes at `at`; the greatest number if 64 bits cannot represent it. No
/// image is as long: the end exceeds each bound that it is compared with, and a read at it fails.
pub fn end_of<T: Exact>(at: T, len: T) -> T {
    at.capped_sum(len)
}

/// Returns the offset of element `index` of a table at `at` with elements of `len` bytes; the
/// greatest number as in [`end_of`].
pub fn nth_at<T: Exact>(at: T, index: T, len: T) -> T {
    at.capped_sum(index.capped_product(len))
}

/// Returns the bytes from `at` to `end`: 0 if `at` is `end` or beyond it.
pub fn left<T: Exact>(end: T, at: T) -> T {
    end.floored_difference(at)
}

/// Arithmetic whose operands have been checked. Debug builds panic if the result is not exact;
/// others return the nearest number, and do not wrap.
pub trait Exact: Copy {
    /// Returns the sum.
    #[must_use]
    fn plus(self, other: Self) -> Self;

    /// Returns the difference. `other` is not greater.
    #[must_use]
    fn minus(self, other: Self) -> Self;

    /// Returns the product.
    #[must_use]
    fn times(self, other: Self) -> Self;

    /// Returns the quotient, rounded down. `other` is not 0.
    #[must_use]
    fn quotient(self, other: Self) -> Self;

    /// Returns the remainder. `other` is not 0.
    #[must_use]
    fn remainder(self, other: Self) -> Self;

    #[doc(hidden)]
    #[must_use]
    fn capped_sum(self, other: Self) -> Self;

    #[doc(hidden)]
    #[must_use]
    fn capped_product(self, other: Self) -> Self;

    #[doc(hidden)]
    #[must_use]
    fn floored_difference(self, other: Self) -> Self;
}

macro_rules! exact {
    ($($type:ty)*) => {$(
        impl Exact for $type {
            #[track_caller]
            fn plus(self, other: Self) -> Self {
                debug_assert!(self.checked_add(other).is_some(), "{self} + {other} overflows");
                self.saturating_add(other)
            }

            #[track_caller]
            fn minus(self, other: Self) -> Self {
                debug_assert!(self.checked_sub(other).is_some(), "{self} - {other} overflows");
                self.saturating_sub(other)
            }

            #[track_caller]
            fn times(self, other: Self) -> Self {
                debug_assert!(self.checked_mul(other).is_some(), "{self} * {other} overflows");
                self.saturating_mul(other)
            }

            #[track_caller]
            fn quotient(self, other: Self) -> Self {
                debug_assert!(other != 0, "{self} / 0");
                self.checked_div(other).unwrap_or(0)
            }

            #[track_caller]
            fn remainder(self, other: Self) -> Self {
                debug_assert!(other != 0, "{self} % 0");
                self.checked_rem(other).unwrap_or(0)
            }

            fn capped_sum(self, other: Self) -> Self {
                self.saturating_add(other)
            }

            fn capped_product(self, other: Self) -> Self {
                self.saturating_mul(other)
            }

            fn floored_difference(self, other: Self) -> Self {
                self.saturating_sub(other)
            }
        }
    )*};
}
exact!(u8 u16 u32 u64 usize i32 i64);

/// Parts of slices whose bounds have been checked. Debug builds panic if the slice lacks them;
/// others return an empty part.
pub trait Within<T> {
    /// Returns the part.
    fn within<R: SliceIndex<[T], Output = [T]>>(&self, range: R) -> &[T];

    /// Returns the part, to be changed.
    fn within_mut<R: SliceIndex<[T], Output = [T]>>(&mut self, range: R) -> &mut [T];
}

impl<T> Within<T> for [T] {
    #[track_caller]
    fn within<R: SliceIndex<[T], Output = [T]>>(&self, range: R) -> &[T] {
        let part = self.get(range);
        debug_assert!(part.is_some(), "a part of a slice of {} lies beyond it", self.len());
        part.unwrap_or_default()
    }

    #[track_caller]
    fn within_mut<R: SliceIndex<[T], Output = [T]>>(&mut self, range: R) -> &mut [T] {
        let len = self.len();
        let part = self.get_mut(range);
        debug_assert!(part.is_some(), "a part of a slice of {len} lies beyond it");
        part.unwrap_or_default()
    }
}

/// Returns `len` bytes at `at`; `None` if `bytes` end before they do.
pub fn part(bytes: &[u8], at: usize, len: usize) -> Option<&[u8]> {
    bytes.get(at..at.checked_add(len)?)
}

/// Returns a text in a field that zeros fill up.
pub fn until_nul(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn bounds_that_are_compared_are_cut_off() {
        assert_eq!((end_of(8_u64, 4), end_of(u64::MAX, 4)), (12, u64::MAX));
        assert_eq!((nth_at(8_usize, 3, 4), nth_at(8, usize::MAX, 4)), (20, usize::MAX));
        assert_eq!((left(8_u32, 3), left(3_u32, 8)), (5, 0));
    }

    #[test]
    fn arithmetic_that_is_not_exact_panics_in_tests() {
        assert_eq!((3_u32.plus(4), 7_u32.minus(7), 3_u64.times(4)), (7, 0, 12));
        assert_eq!((7_usize.quotient(2), 7_usize.remainder(2)), (3, 1));
        let mistakes: [fn() -> u8; 5] =
            [|| 255.plus(1), || 3.minus(4), || 16.times(16), || 1.quotient(0), || 1.remainder(0)];
        for mistake in mistakes {
            assert_eq!(catch_unwind(mistake).is_err(), cfg!(debug_assertions));
        }
    }

    #[test]
    fn parts_beyond_the_end_are_none_or_panic_in_tests() {
        let mut bytes = [1, 2, 3, 4];
        assert_eq!(
            (bytes.within(2..), bytes.within(..1), bytes.within(4..)),
            (&[3, 4][..], &[1][..], &[][..])
        );
        bytes.within_mut(1..3).fill(0);
        assert_eq!(bytes, [1, 0, 0, 4]);
        assert_eq!(catch_unwind(|| bytes.within(5..).len()).is_err(), cfg!(debug_assertions));
        assert_eq!((until_nul(&bytes), until_nul(&[1, 2]), until_nul(&[])), (&[1][..], &[1, 2][..], &[][..]));
        assert_eq!(
            (part(&bytes, 3, 1), part(&bytes, 3, 2), part(&bytes, 5, usize::MAX)),
            (Some(&[4][..]), None, None)
        );
    }
}

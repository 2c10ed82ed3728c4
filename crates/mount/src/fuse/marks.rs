//! Parts of a file that were stored in the kernel's page cache. A read of such a part shows that
//! the kernel evicted it; storing more would evict other data.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Length of the shortest part that is tracked.
const PART_LEN_MIN: u64 = 16 << 10;
/// Most parts of one file: 8 KiB of marks.
const PARTS_MAX: u64 = 1 << 16;
/// One part in `ONE_OF` that were evicted is stored again, because access patterns change.
const ONE_OF: u32 = 8;

#[derive(Default)]
pub(crate) struct Marks {
    /// One bit for each part; allocated with the first mark.
    bits: OnceLock<Box<[AtomicU64]>>,
    again: AtomicU32,
}

impl Marks {
    /// `len` is that of the file.
    pub(crate) fn want(&self, offset: u64, len: u64) -> bool {
        let part = offset / part_len(len);
        let word = self.bits.get().and_then(|bits| bits.get((part / 64) as usize));
        let is_given = word.is_some_and(|word| word.load(Ordering::Relaxed) >> (part % 64) & 1 == 1);
        !is_given || self.again.fetch_add(1, Ordering::Relaxed) % ONE_OF == ONE_OF - 1
    }

    pub(crate) fn mark(&self, given: &Range<u64>, len: u64) {
        let bits = self.bits.get_or_init(|| {
            let parts = len.div_ceil(part_len(len));
            (0..parts.div_ceil(64)).map(|_| AtomicU64::new(0)).collect()
        });
        let first = given.start / part_len(len);
        for part in first..given.end.div_ceil(part_len(len)) {
            let Some(word) = bits.get((part / 64) as usize) else { return };
            word.fetch_or(1 << (part % 64), Ordering::Relaxed);
        }
    }
}

fn part_len(len: u64) -> u64 {
    len.div_ceil(PARTS_MAX).max(PART_LEN_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_parts_are_seldom_stored_again() {
        let (marks, len) = (Marks::default(), 500 << 20);
        assert!((0..len).step_by(100_000).all(|offset| marks.want(offset, len)));
        marks.mark(&(128 << 10..256 << 10), len);
        assert!(marks.want((128 << 10) - 1, len) && marks.want(256 << 10, len));
        let given = (0..8000).filter(|index| marks.want((128 << 10) + index * 16, len)).count();
        assert_eq!(given, 1000);
    }

    #[test]
    fn marks_are_bounded_for_any_file() {
        for len in [0, 1, PART_LEN_MIN, 1 << 30, u64::MAX] {
            let marks = Marks::default();
            let end = len.min(1 << 40);
            marks.mark(&(end.saturating_sub(1)..end), len);
            marks.mark(&(len.saturating_sub(1)..len), len);
            assert!(marks.bits.get().unwrap().len() as u64 <= PARTS_MAX / 64);
            assert_eq!(marks.want(len.saturating_sub(1), len), len == 0);
            assert!(marks.want(u64::MAX, len) || len == u64::MAX);
        }
    }
}

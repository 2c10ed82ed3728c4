//! Reading the input in words, and how far two places of it agree, ahead and back.

/// The eight bytes at `at`.
#[inline(always)]
pub(super) fn load8(src: &[u8], at: usize) -> u64 {
    let bytes: [u8; 8] = src[at..at + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(bytes)
}

/// How many bytes from `left` and from `right` on, which lies after it, are equal; looks no further than `right + max`,
/// which must lie within `src`.
#[inline]
pub(super) fn common_ahead(src: &[u8], left: usize, right: usize, max: usize) -> usize {
    let (left, left_tail) = src[left..left + max].as_chunks::<8>();
    let (right, right_tail) = src[right..right + max].as_chunks::<8>();
    let mut len = 0;
    for (left, right) in left.iter().zip(right) {
        let differing = u64::from_le_bytes(*left) ^ u64::from_le_bytes(*right);
        if differing != 0 {
            return len + (differing.trailing_zeros() / 8) as usize;
        }
        len += 8;
    }
    len + left_tail.iter().zip(right_tail).take_while(|(left, right)| left == right).count()
}

/// How many bytes before `left` and before `right`, which lies after it, are equal; looks at `max` or fewer, which must
/// lie within `src`.
#[inline]
pub(super) fn common_back(src: &[u8], left: usize, right: usize, max: usize) -> usize {
    let (left_tail, left) = src[left - max..left].as_rchunks::<8>();
    let (right_tail, right) = src[right - max..right].as_rchunks::<8>();
    let mut len = 0;
    for (left, right) in left.iter().rev().zip(right.iter().rev()) {
        let differing = u64::from_le_bytes(*left) ^ u64::from_le_bytes(*right);
        if differing != 0 {
            return len + (differing.leading_zeros() / 8) as usize;
        }
        len += 8;
    }
    let tails = left_tail.iter().rev().zip(right_tail.iter().rev());
    len + tails.take_while(|(left, right)| left == right).count()
}

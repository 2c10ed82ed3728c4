//! Helpers of match finders: loads of words, lengths of common strings, and tables of positions.

#[inline(always)]
pub(crate) fn load4(src: &[u8], at: usize) -> u32 {
    let bytes: [u8; 4] = src[at..at + 4].try_into().expect("four bytes");
    u32::from_le_bytes(bytes)
}

#[inline(always)]
pub(crate) fn load8(src: &[u8], at: usize) -> u64 {
    let bytes: [u8; 8] = src[at..at + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(bytes)
}

/// Counts the equal bytes at `left` and at `right`, which is after it; `known` of them are known to
/// be equal. Stops at `right + max`, which must be within `src`.
#[inline(always)]
pub(crate) fn common_len(src: &[u8], left: usize, right: usize, known: usize, max: usize) -> usize {
    let (left, left_tail) = src[left + known..left + max].as_chunks::<8>();
    let (right, right_tail) = src[right + known..right + max].as_chunks::<8>();
    let mut len = known;
    for (left, right) in left.iter().zip(right) {
        let differing = u64::from_le_bytes(*left) ^ u64::from_le_bytes(*right);
        if differing != 0 {
            return len + (differing.trailing_zeros() / 8) as usize;
        }
        len += 8;
    }
    len + left_tail.iter().zip(right_tail).take_while(|(left, right)| left == right).count()
}

/// Counts the equal bytes before `left` and before `right`, which is after it. Compares `max` or
/// fewer, which must be within `src`.
#[inline]
#[cfg(any(feature = "lz4", feature = "zstd"))]
pub(crate) fn common_back(src: &[u8], left: usize, right: usize, max: usize) -> usize {
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

/// Returns a table of zeros on the heap, without a copy on the stack, where large ones would not
/// fit.
pub(crate) fn zeroed<T: Copy + Default, const N: usize>() -> Box<[T; N]> {
    let table = vec![T::default(); N].into_boxed_slice();
    table.try_into().unwrap_or_else(|_| unreachable!("as long as asked for"))
}

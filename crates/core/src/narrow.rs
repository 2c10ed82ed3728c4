//! Narrowing of lengths, without a cast that cuts.

/// The number of bytes as this machine counts them.
///
/// It is the largest number where the machine cannot address so many: then an allocation fails
/// instead of being too short.
///
/// # Examples
///
/// ```
/// assert_eq!(packfs_core::usize_of(4096), 4096);
/// ```
pub const fn usize_of(len: u64) -> usize {
    if size_of::<usize>() < size_of::<u64>() && len > usize::MAX as u64 { usize::MAX } else { len as usize }
}

/// The number in 32 bits.
///
/// It is the largest such number where they cannot hold it: then what it counts is refused.
///
/// # Examples
///
/// ```
/// assert_eq!(packfs_core::u32_of(4096), 4096);
/// assert_eq!(packfs_core::u32_of(1 << 40), u32::MAX);
/// ```
pub const fn u32_of(len: u64) -> u32 {
    if len > u32::MAX as u64 { u32::MAX } else { len as u32 }
}

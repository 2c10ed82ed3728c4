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

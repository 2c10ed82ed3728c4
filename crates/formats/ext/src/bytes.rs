//! Access to parts of byte slices, and fields stored in halves.

use packfs_format::units::*;

pub(crate) fn joined(low: impl Into<u32>, high: impl Into<u32>) -> u64 {
    u64::from(low.into()) | u64::from(high.into()) << 32
}

/// Replaces bytes if `bytes` is long enough.
pub(crate) fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    if let Some(old) = bytes.get_mut(at..at.plus(new.len())) {
        old.copy_from_slice(new);
    }
}

//! How far the kernel reads ahead, which is little for a FUSE mount unless root says otherwise.

use std::fs;

/// Twice the default of a disk; a read of this length is the longest that the kernel asks for.
const KIB: u32 = 1024;

/// Widens it if we may; a mount works without.
pub(crate) fn widen((major, minor): (u32, u32)) {
    let _ = fs::write(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"), KIB.to_string());
}

//! Metadata of EROFS: inodes with what belongs to them, in blocks that are read one by one.

use super::Place;
use packfs::InodeId;

/// An inode and its attributes, about.
const INODE_LEN: u64 = 64;
/// Bytes of file that a row of the compact index stands for, and its bytes.
const ROW: (u64, u64) = (4096, 2);
/// A block.
const PAGE: u64 = 4096;
/// Most blocks of an index that are read.
const PAGES_MAX: usize = 64;

/// What is read for an inode of a file of so many bytes.
pub(super) fn inode(id: InodeId, len: u64) -> Vec<Place> {
    let start = id.0.saturating_mul(32);
    let rows = len.div_ceil(ROW.0) * ROW.1;
    let pages = start / PAGE..=(start + INODE_LEN + rows) / PAGE;
    pages.take(PAGES_MAX).map(page).collect()
}

/// What is read to find a name in a list of so many bytes.
pub(super) fn name(dir: InodeId, listed: u64, name: &[u8]) -> Vec<Place> {
    // A short one lies beside the inode.
    if listed < PAGE {
        return Vec::new();
    }
    let within = (listed as f64 * fraction_of(name)) as u64 / PAGE;
    vec![page(dir.0.saturating_mul(32) / PAGE + 1 + within)]
}

fn page(number: u64) -> Place {
    Place { offset: number * PAGE, len: PAGE as u32 }
}

/// How far into a sorted list a name stands, about.
fn fraction_of(name: &[u8]) -> f64 {
    let first = name.first().copied().unwrap_or_default();
    (f64::from(first) - 32.0).clamp(0.0, 96.0) / 97.0
}

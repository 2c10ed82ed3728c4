//! The figures of a dm-verity superblock, and some hashes of its tree.

use super::{Field, Finder};

const SIGNATURE: &[u8] = b"verity\0\0";
const STEP: usize = 512;
/// Hashes that are taken from where the tree begins.
const HASHES: usize = 64;

/// Finds the first superblock.
pub(super) fn superblock(image: &[u8]) -> Option<usize> {
    (0..image.len()).step_by(STEP).find(|&at| image[at..].starts_with(SIGNATURE))
}

pub(super) fn fields(image: &[u8], at: usize) -> Vec<Field> {
    let mut finder = Finder::new(image);
    // Version, type of hash; lengths of blocks, their number, length of the salt.
    finder.row("superblock", at + 8, &[4, 4]);
    finder.row("superblock", at + 64, &[4, 4, 8, 2]);
    // UUID, name of the function, salt.
    finder.row("text", at + 16, &[8; 6]);
    finder.row("text", at + 88, &[8; 32]);
    let hash_block_len = finder.offset(at + 68, 4).clamp(STEP, 1 << 16);
    finder.row("hash", at + hash_block_len, &[8; 4 * HASHES]);
    finder.found
}

//! The figures of a dm-verity superblock, and some hashes of its tree.

use super::{Field, row};

const SIGNATURE: &[u8] = b"verity\0\0";
const STEP: usize = 512;
/// Hashes that are taken from where the tree begins.
const HASHES: usize = 64;

/// The figures of the first superblock.
pub(super) fn fields(image: &[u8]) -> Vec<Field> {
    let mut found = Vec::new();
    let Some(at) = (0..image.len()).step_by(STEP).find(|&at| image[at..].starts_with(SIGNATURE)) else {
        return found;
    };
    // Version, type of hash; lengths of blocks, their number, length of the salt.
    row(&mut found, "superblock", at + 8, &[4, 4]);
    row(&mut found, "superblock", at + 64, &[4, 4, 8, 2]);
    // UUID, name of the function, salt.
    row(&mut found, "text", at + 16, &[8; 6]);
    row(&mut found, "text", at + 88, &[8; 32]);
    let hash_block_len = (Field::new("", at + 68, 4).get(image) as usize).clamp(STEP, 1 << 16);
    row(&mut found, "hash", at + hash_block_len, &[8; 4 * HASHES]);
    found
}

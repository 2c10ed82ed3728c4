//! Checksums of btrfs: of the superblock, and of tree blocks, found by the UUID that they carry.

use crate::Field;
use packfs_format::crc32c;

const SUPER_AT: usize = 64 << 10;
const SUPER_LEN: usize = 4096;
const MAGIC: &[u8] = b"_BHRfS_M";

/// Returns true if an image has the superblock of one.
fn is_one(image: &[u8]) -> bool {
    image.get(SUPER_AT + 0x40..SUPER_AT + 0x48) == Some(MAGIC)
}

fn number(image: &[u8], at: usize, len: usize) -> usize {
    usize::try_from(Field::new("", at, len).get(image)).unwrap_or(usize::MAX)
}

/// Returns the offsets of all tree blocks, and their length.
fn blocks(image: &[u8]) -> (Vec<usize>, usize) {
    let len = number(image, SUPER_AT + 0x94, 4);
    let is_length = len.is_power_of_two() && (4096..=64 << 10).contains(&len);
    let len = if is_length { len } else { 4096 };
    let uuid = image.get(SUPER_AT + 0x20..SUPER_AT + 0x30).unwrap_or_default();
    let starts = (SUPER_AT + SUPER_LEN..image.len()).step_by(4096);
    let is_block = |at: &usize| image.get(at + 0x20..at + 0x30) == Some(uuid) && at + len <= image.len();
    (starts.filter(is_block).collect(), len)
}

/// Puts the checksums of the superblock and of all tree blocks right, where they are CRC-32C.
pub(super) fn repair(image: &mut [u8]) {
    if !is_one(image) || image.len() < SUPER_AT + SUPER_LEN || number(image, SUPER_AT + 0xc4, 2) != 0 {
        return;
    }
    let (blocks, len) = blocks(image);
    for (at, len) in blocks.into_iter().map(|at| (at, len)).chain([(SUPER_AT, SUPER_LEN)]) {
        let sum = !crc32c(!0, &image[at + 32..at + len]);
        image[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    }
}

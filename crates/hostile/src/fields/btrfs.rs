//! The figures of a btrfs image: superblock, system chunks, headers of tree blocks, keys and places
//! of items, and the fields of inodes, entries, extents, roots, chunks, and references. Blocks are
//! found by the UUID that they carry.

use super::{Field, Finder};

const SUPER_AT: usize = 64 << 10;
const SUPER_LEN: usize = 4096;
const MAGIC: &[u8] = b"_BHRfS_M";
const HEADER_LEN: usize = 101;

/// Returns true if an image has the superblock of one.
pub(super) fn is_one(image: &[u8]) -> bool {
    image.get(SUPER_AT + 0x40..SUPER_AT + 0x48) == Some(MAGIC)
}

fn number(image: &[u8], at: usize, len: usize) -> usize {
    usize::try_from(Field { at, len, of: "" }.get(image)).unwrap_or(usize::MAX)
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
pub(crate) fn repair(image: &mut [u8]) {
    if !is_one(image) || image.len() < SUPER_AT + SUPER_LEN || number(image, SUPER_AT + 0xc4, 2) != 0 {
        return;
    }
    let (blocks, len) = blocks(image);
    for (at, len) in blocks.into_iter().map(|at| (at, len)).chain([(SUPER_AT, SUPER_LEN)]) {
        let sum = crc32c(&image[at + 32..at + len]);
        image[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    }
}

pub(super) fn fields(image: &[u8]) -> Vec<Field> {
    let mut finder = Finder::new(image);
    finder.row("superblock", SUPER_AT + 0x30, &[8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8]);
    finder.row("superblock", SUPER_AT + 0x90, &[4; 5]);
    finder.row("superblock", SUPER_AT + 0xa4, &[8, 8, 8, 8, 2, 1, 1, 1, 8, 8]);
    finder.row("chunk", SUPER_AT + 0x32b, &[8, 1, 8, 8, 8, 8, 8, 4, 4, 4, 2, 2, 8, 8]);
    for at in blocks(image).0 {
        block(&mut finder, at);
    }
    finder.found
}

fn block(finder: &mut Finder<'_>, at: usize) {
    finder.row("block", at + 0x30, &[8]);
    finder.row("block", at + 0x50, &[8, 8, 4, 1]);
    let count = number(finder.image, at + 0x60, 4).min(700);
    if number(finder.image, at + 0x64, 1) > 0 {
        (0..count).for_each(|slot| finder.row("pointer", at + HEADER_LEN + 33 * slot, &[8, 1, 8, 8, 8]));
        return;
    }
    for slot in 0..count {
        let item = at + HEADER_LEN + 25 * slot;
        finder.row("item", item, &[8, 1, 8, 4, 4]);
        let data = at.saturating_add(HEADER_LEN).saturating_add(number(finder.image, item + 17, 4));
        match number(finder.image, item + 8, 1) {
            1 => {
                finder.row("inode", data, &[8, 8, 8, 8, 8, 4, 4, 4, 4, 8, 8]);
                finder.row("inode", data + 0x88, &[8, 4]);
            }
            12 | 13 | 144 | 156 => finder.row("reference", data, &[8, 2, 1, 1, 8, 2]),
            24 | 84 | 96 => finder.row("entry", data, &[8, 1, 8, 8, 2, 2, 1, 1]),
            108 => finder.row("extent", data, &[8, 8, 1, 1, 2, 1, 8, 8, 8, 8]),
            128 => finder.row("checksum", data, &[4]),
            132 => finder.row("root", data + 0xa0, &[8, 8, 8, 8, 8, 8, 8, 4, 8, 1, 8, 1, 1]),
            168 | 169 => finder.row("allocation", data, &[8, 8, 8]),
            216 => finder.row("device", data, &[8, 8, 8, 4, 4, 4]),
            228 => finder.row("chunk", data, &[8, 8, 8, 8, 4, 4, 4, 2, 2, 8, 8]),
            _ => {}
        }
    }
}

/// CRC-32C, with its inversions.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

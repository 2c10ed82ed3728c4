//! The figures of a romfs image: the superblock and every file header, found by its place in
//! chains, with the first byte of its name.

use super::{Field, Finder};
use std::collections::HashSet;

const MAGIC: &[u8] = b"-rom1fs-";
const HEADER_LEN: usize = 16;

/// Returns true if an image begins like one.
pub(super) fn is_one(image: &[u8]) -> bool {
    image.starts_with(MAGIC)
}

/// Puts the checksum of the superblock right.
pub(crate) fn repair(image: &mut [u8]) {
    if !is_one(image) || image.len() < HEADER_LEN {
        return;
    }
    let len = (number(image, 8) as usize).min(512).min(image.len()) & !3;
    image[12..16].fill(0);
    let sum = (0..len).step_by(4).fold(0_u32, |sum, at| sum.wrapping_add(number(image, at)));
    image[12..16].copy_from_slice(&sum.wrapping_neg().to_be_bytes());
}

pub(super) fn fields(image: &[u8]) -> Vec<Field> {
    let mut finder = Finder::new(image);
    // Figures are big-endian, so they are taken byte by byte as well.
    let mut figures = |of, at| {
        finder.row(of, at, &[4; 4]);
        finder.row(of, at, &[1; 16]);
        finder.row("name", at + HEADER_LEN, &[1]);
    };
    figures("superblock", 0);
    let mut seen = HashSet::new();
    let mut left = vec![behind_name(image, 0)];
    while let Some(at) = left.pop() {
        if at < HEADER_LEN || at >= image.len() || !seen.insert(at) {
            continue;
        }
        figures("header", at);
        let next = number(image, at);
        left.push(next as usize & !15);
        if matches!(next & 7, 0 | 1) {
            left.push(number(image, at + 4) as usize & !15);
        }
    }
    finder.found
}

fn behind_name(image: &[u8], at: usize) -> usize {
    let start = at + HEADER_LEN;
    let len = image.iter().skip(start).position(|&byte| byte == 0).unwrap_or(0);
    (start + len + 1).next_multiple_of(HEADER_LEN)
}

fn number(image: &[u8], at: usize) -> u32 {
    let bytes = image.get(at..at.saturating_add(4)).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_be_bytes)
}

//! Checksums of VHD and of LVM2.

use crate::Field;
use std::ops::Range;

fn is_lvm(image: &[u8]) -> bool {
    image.get(512..520) == Some(b"LABELONE")
}

fn footer(image: &[u8]) -> Option<usize> {
    let at = image.len().checked_sub(512)?;
    image[at..].starts_with(b"conectix").then_some(at)
}

fn number(image: &[u8], at: usize) -> usize {
    Field::new("", at, 8).get(image).try_into().unwrap_or(usize::MAX)
}

/// Areas of metadata that lie within the file, as the label has them.
fn areas(image: &[u8]) -> Vec<Range<usize>> {
    let areas =
        [616, 632].map(|at| number(image, at)..number(image, at).saturating_add(number(image, at + 8)));
    areas.into_iter().filter(|area| area.end <= image.len() && area.len() > 512).collect()
}

/// Places of the text of an area, which may go on at its start.
fn texts(image: &[u8], area: &Range<usize>) -> Vec<Range<usize>> {
    let (at, len) = (number(image, area.start + 40), number(image, area.start + 48));
    if at < 512 || at >= area.len() || len > area.len() - 512 {
        return Vec::new();
    }
    let first = len.min(area.len() - at);
    let start = area.start + at;
    vec![start..start + first, area.start + 512..area.start + 512 + len - first]
}

/// Puts the checksums of a VHD or of LVM2 right.
pub(crate) fn repair(image: &mut [u8]) {
    if is_lvm(image) {
        return repair_lvm(image);
    }
    let end = footer(image);
    let is_dynamic = image.starts_with(b"conectix");
    for (at, len, field, is_there) in
        [(0, 512, 64, is_dynamic), (512, 1024, 36, is_dynamic), (end.unwrap_or(0), 512, 64, end.is_some())]
    {
        if is_there && let Some(bytes) = image.get_mut(at..at + len) {
            bytes[field..field + 4].fill(0);
            let sum = bytes.iter().fold(0_u32, |sum, byte| sum + u32::from(*byte));
            bytes[field..field + 4].copy_from_slice(&(!sum).to_be_bytes());
        }
    }
}

fn repair_lvm(image: &mut [u8]) {
    for area in areas(image) {
        let text: Vec<u8> = texts(image, &area).into_iter().flat_map(|range| image[range].to_vec()).collect();
        let sum = checksum(&text);
        image[area.start + 56..area.start + 60].copy_from_slice(&sum.to_le_bytes());
        let sum = checksum(&image[area.start + 4..area.start + 512]);
        image[area.start..area.start + 4].copy_from_slice(&sum.to_le_bytes());
    }
    if let Some(label) = image.get(512 + 20..1024) {
        let sum = checksum(label);
        image[512 + 16..512 + 20].copy_from_slice(&sum.to_le_bytes());
    }
}

/// CRC-32 with the seed of LVM2, and without inversions.
fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(!0xf597_a6cf);
    hasher.update(bytes);
    !hasher.finalize()
}

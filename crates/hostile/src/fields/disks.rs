//! The figures of virtual disks and of LVM2, and their checksums. Those of VHD are big-endian, so
//! each of their bytes is a figure of its own.

use super::{Field, Finder};
use std::ops::Range;

/// Rows of a table that are taken.
const ROWS_MAX: usize = 64;

/// Returns the figures of a disk; `None` if it is none.
pub(super) fn fields(image: &[u8]) -> Option<Vec<Field>> {
    let mut finder = Finder::new(image);
    if is_lvm(image) {
        lvm(&mut finder);
    } else if image.starts_with(b"KDMV") {
        vmdk(&mut finder);
    } else if image.starts_with(&[0x3a, 0xff, 0x26, 0xed]) {
        sparse(&mut finder);
    } else if image.get(64..68) == Some(&[0x7f, 0x10, 0xda, 0xbe]) {
        finder.row("header", 68, &[4, 4, 4, 4]);
        finder.row("header", 340, &[4, 4, 0, 0, 0, 0, 0, 8, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8]);
        finder.row("table", 512, &[4; ROWS_MAX]);
    } else if image.starts_with(b"conectix") || footer(image).is_some() {
        vhd(&mut finder);
    } else {
        return None;
    }
    finder.found.retain(|field| field.at < image.len());
    Some(finder.found)
}

fn is_lvm(image: &[u8]) -> bool {
    image.get(512..520) == Some(b"LABELONE")
}

fn footer(image: &[u8]) -> Option<usize> {
    let at = image.len().checked_sub(512)?;
    image[at..].starts_with(b"conectix").then_some(at)
}

fn vhd(finder: &mut Finder<'_>) {
    for at in footer(finder.image).into_iter().chain([0]) {
        if finder.image[at..].starts_with(b"conectix") {
            finder.row("footer", at + 8, &[1; 56]);
        }
    }
    if finder.image.get(512..520) == Some(b"cxsparse") {
        finder.row("header", 512 + 8, &[1; 28]);
        finder.row("table", 1536, &[1; 4 * ROWS_MAX]);
    }
}

fn vmdk(finder: &mut Finder<'_>) {
    let heads = [Some(0), finder.image.len().checked_sub(1024)];
    for head in heads.into_iter().flatten() {
        if !finder.image[head..].starts_with(b"KDMV") {
            continue;
        }
        finder.row("header", head + 4, &[4, 4, 8, 8, 8, 8, 4, 8, 8, 8, 1, 1, 1, 1, 1, 2]);
        for at in [48, 56] {
            let directory = finder.offset(head + at, 8).saturating_mul(512);
            finder.row("directory", directory, &[4; 8]);
            let table = finder.offset(directory, 4).saturating_mul(512);
            finder.row("table", table, &[4; 16]);
            // The heads of compressed grains.
            for row in 0..16 {
                let grain = finder.offset(table.saturating_add(4 * row), 4).saturating_mul(512);
                if grain > 0 {
                    finder.row("grain", grain, &[8, 4]);
                }
            }
        }
    }
}

fn sparse(finder: &mut Finder<'_>) {
    finder.row("header", 4, &[2, 2, 2, 2, 4, 4, 4, 4]);
    let mut at = 28;
    for _ in 0..ROWS_MAX {
        finder.row("chunk", at, &[2, 2, 4, 4]);
        at = at.saturating_add(finder.offset(at.saturating_add(8), 4).max(12));
    }
}

fn lvm(finder: &mut Finder<'_>) {
    finder.row("label", 512 + 8, &[8, 4, 4, 8]);
    finder.row("label", 544, &[8; 16]);
    for area in areas(finder.image) {
        finder.row("area", area.start, &[4, 8, 8, 4, 8, 8, 8, 8, 4, 4]);
        // Digits and quotes of the text, of which each may be another.
        for text in texts(finder.image, &area) {
            for at in text {
                if finder.image[at].is_ascii_punctuation() || finder.image[at].is_ascii_digit() {
                    finder.row("text", at, &[1]);
                }
            }
        }
    }
}

fn number(image: &[u8], at: usize) -> usize {
    Field { at, len: 8, of: "" }.get(image).try_into().unwrap_or(usize::MAX)
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

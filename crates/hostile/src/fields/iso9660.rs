//! The figures of an ISO 9660 image: descriptors, directory records with their system use entries
//! and continuation areas, path tables, the boot catalog, and headers and block pointers of zisofs.

use super::{Field, Finder};
use std::collections::HashSet;

const SECTOR: usize = 2048;
/// Descriptors that are looked at.
const DESCRIPTORS: std::ops::Range<usize> = 16..24;
/// Entries that are taken of one record, and pointers of one file.
const ENTRIES_MAX: usize = 64;

pub(super) fn is_one(image: &[u8]) -> bool {
    image.get(32_769..32_774) == Some(b"CD001")
}

/// Has the descriptors say that the image is as long as it is; whether it is one of these.
pub(crate) fn claim_len(image: &mut [u8]) -> bool {
    if !is_one(image) {
        return false;
    }
    let count = (image.len() / SECTOR) as u32;
    for at in DESCRIPTORS.map(|sector| sector * SECTOR) {
        let Some(descriptor) = image.get_mut(at..at + SECTOR) else { break };
        if descriptor[1..6] == *b"CD001" && matches!(descriptor[0], 1 | 2) {
            descriptor[80..84].copy_from_slice(&count.to_le_bytes());
            descriptor[84..88].copy_from_slice(&count.to_be_bytes());
        }
    }
    true
}

pub(super) fn fields(image: &[u8]) -> Vec<Field> {
    let mut finder = Finder::new(image);
    for at in DESCRIPTORS.map(|sector| sector * SECTOR) {
        if image.get(at + 1..at + 6) != Some(b"CD001") {
            break;
        }
        finder.row("descriptor", at, &[1, 1]);
        if image[at] == 0 {
            finder.row("boot record", at + 71, &[4]);
            let catalog = finder.offset(at + 71, 4).saturating_mul(SECTOR);
            for entry in 0..8 {
                finder.row("boot catalog", catalog.saturating_add(32 * entry), &[1, 1, 2, 1, 1, 2, 4]);
            }
            continue;
        }
        finder.row("descriptor", at + 80, &[4, 4]);
        finder.row("descriptor", at + 88, &[1, 1, 1]);
        finder.row("descriptor", at + 120, &[2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4]);
        finder.row("root record", at + 156, &[1, 1, 4, 4, 4, 4]);
        let table = finder.offset(at + 140, 4).saturating_mul(SECTOR);
        for row in 0..8 {
            finder.row("path table", table.saturating_add(10 * row), &[1, 1, 4, 2]);
        }
        if image[at] == 1 || image[at] == 2 {
            let root = (finder.offset(at + 158, 4), finder.offset(at + 166, 4));
            directories(&mut finder, root);
        }
    }
    finder.found
}

fn directories(finder: &mut Finder<'_>, root: (usize, usize)) {
    let mut seen = HashSet::new();
    let mut open = vec![root];
    while let Some((block, len)) = open.pop() {
        let start = block.saturating_mul(SECTOR);
        if !seen.insert(block) || start >= finder.image.len() || finder.is_full() {
            continue;
        }
        let end = start.saturating_add(len).min(finder.image.len());
        let mut at = start;
        while at + 34 <= end && !finder.is_full() {
            let len = finder.offset(at, 1);
            if len < 34 {
                at = (at / SECTOR + 1) * SECTOR;
                continue;
            }
            record(finder, at, len, &mut open);
            at += len;
        }
    }
}

fn record(finder: &mut Finder<'_>, at: usize, len: usize, open: &mut Vec<(usize, usize)>) {
    finder.row("record", at, &[1, 1, 4, 4, 4, 4, 1, 1, 1, 1, 1, 1, 1]);
    finder.row("record", at + 25, &[1, 1, 1, 2, 2, 1, 1]);
    let extent = (finder.offset(at + 2, 4), finder.offset(at + 10, 4));
    let name_len = finder.offset(at + 32, 1);
    if finder.number(at + 25, 1) & 2 != 0 && name_len > 1 {
        open.push(extent);
    }
    let mut area = (at + 33 + name_len + usize::from(name_len.is_multiple_of(2)), at + len);
    // Chains of areas are short in sound images.
    for _ in 0..4 {
        match entries(finder, area, extent.0) {
            Some(next) => area = next,
            None => return,
        }
    }
}

/// The entries of an area. Returns where they go on.
fn entries(finder: &mut Finder<'_>, (mut at, end): (usize, usize), block: usize) -> Option<(usize, usize)> {
    let mut next = None;
    for _ in 0..ENTRIES_MAX {
        if at + 4 > end.min(finder.image.len()) {
            break;
        }
        let len = finder.offset(at + 2, 1);
        if len < 4 {
            break;
        }
        let signature = &finder.image[at..at + 2];
        let (is_continued, is_compressed) = (signature == b"CE", signature == b"ZF");
        finder.row("entry", at, &[1, 1, 1, 1]);
        match signature {
            b"PX" | b"PN" | b"CE" | b"CL" => {
                for number in 0..(len - 4) / 4 {
                    finder.row("entry", at + 4 + 4 * number, &[4]);
                }
            }
            _ => {
                for byte in 4..len.min(20) {
                    finder.row("entry", at + byte, &[1]);
                }
            }
        }
        if is_continued {
            let start =
                finder.offset(at + 4, 4).saturating_mul(SECTOR).saturating_add(finder.offset(at + 12, 4));
            next = Some((start, start.saturating_add(finder.offset(at + 20, 4))));
        }
        if is_compressed {
            zisofs(finder, block.saturating_mul(SECTOR));
        }
        at += len;
    }
    next
}

fn zisofs(finder: &mut Finder<'_>, start: usize) {
    finder.row("zisofs header", start, &[8, 1, 1, 1, 1, 4]);
    for word in 0..8 {
        finder.row("block pointer", start.saturating_add(16 + 4 * word), &[4]);
    }
}

//! The figures of a UDF image: every descriptor, found by its tag and not by what leads to it, with
//! the allocation descriptors, attributes, and partition maps behind their heads.

use super::{Field, Finder};

const RECOGNITION: usize = 32 << 10;
const SECTOR: usize = 2048;
const TAG_LEN: usize = 16;
const BLOCK_MIN: usize = 512;
/// Tags stand at multiples of this.
const ALIGN: usize = 4;
/// Words that are taken of what follows a head.
const WORDS_MAX: usize = 24;

/// Heads by their tags: name, and figures from the end of the tag on, 0 for four bytes of none.
const HEADS: [(u16, &str, &[usize]); 14] = [
    (0, "sparing table", &[0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 4, 4, 4, 4, 4, 4, 4, 4, 4]),
    (1, "primary volume", &[4, 4, 1]),
    (2, "anchor", &[4, 4, 4, 4]),
    (3, "next sequence", &[4, 4, 4]),
    (5, "partition", &[4, 2, 2]),
    (6, "logical volume", &[4]),
    (9, "integrity", &[2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 4, 4, 4]),
    (256, "file set", &[2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2]),
    (257, "identifier", &[2, 1, 1, 4, 4, 2, 2, 4, 2, 1, 1, 1, 1]),
    (258, "continuation", &[4, 4]),
    (259, "indirect entry", &[4, 2, 2, 2, 1, 1, 4, 2, 2, 4, 4, 2]),
    (261, "file entry", &ENTRY),
    (262, "attributes", &[4, 4, 4, 1, 1, 1, 1, 4, 4, 4, 4]),
    (266, "file entry", &ENTRY),
];

/// Figures that both kinds of entries have, up to the length.
const ENTRY: [usize; 21] = [4, 2, 2, 2, 1, 1, 4, 2, 2, 4, 4, 4, 2, 1, 1, 4, 8, 8, 8, 4, 4];

/// Figures of heads far behind the tag, by their offset.
const FAR: [(u16, usize, &[usize]); 9] = [
    (5, 56, &[4, 4, 4, 4, 4, 4, 4, 4]),
    (5, 184, &[4, 4, 4]),
    (6, 212, &[4, 1, 1, 1]),
    (6, 240, &[2]),
    (6, 248, &[4, 4, 2]),
    (6, 264, &[4, 4]),
    (6, 432, &[4, 4]),
    (9, 72, &[4, 4, 4, 4, 4, 4]),
    (256, 400, &[4, 4, 2]),
];

/// Returns true if the volume recognition sequence says so.
pub(super) fn is_one(image: &[u8]) -> bool {
    recognition(image).any(|at| matches!(&image[at + 1..at + 6], b"BEA01" | b"NSR02" | b"NSR03" | b"TEA01"))
}

/// Offsets of its descriptors.
fn recognition(image: &[u8]) -> impl Iterator<Item = usize> {
    let end = image.len().min(RECOGNITION + 8 * SECTOR);
    (RECOGNITION..end.saturating_sub(SECTOR)).step_by(SECTOR).filter(|&at| image[at + 1] != 0)
}

/// Puts the checksums of descriptors right that have one of two left.
pub(crate) fn repair(image: &mut [u8]) {
    if !is_one(image) {
        return;
    }
    // Descriptors within others come first.
    for at in (0..image.len().saturating_sub(TAG_LEN)).step_by(ALIGN).rev() {
        if head(image, at).is_none() {
            continue;
        }
        let Some(covered) = covered(image, at) else { continue };
        let crc = crc(covered).to_le_bytes();
        if image[at + 4] == sum(image, at) || image[at + 8..at + 10] == crc {
            image[at + 8..at + 10].copy_from_slice(&crc);
            image[at + 4] = sum(image, at);
        }
    }
}

/// The row of a tag that may stand at `at`.
fn head(image: &[u8], at: usize) -> Option<(u16, &'static str, &'static [usize])> {
    let tag = image.get(at..at + TAG_LEN)?;
    if !matches!(tag[2], 2 | 3) || tag[3] != 0 || tag[5] != 0 {
        return None;
    }
    let ident = u16::from_le_bytes([tag[0], tag[1]]);
    // Numbers of others are rare among plain figures.
    if ident == 0 && image.get(at + TAG_LEN + 1..at + TAG_LEN + 20) != Some(b"*UDF Sparing Table\0") {
        return None;
    }
    HEADS.into_iter().find(|(own, ..)| *own == ident)
}

/// The bytes that its CRC is of, if they are in one block: identifiers go on elsewhere.
fn covered(image: &[u8], at: usize) -> Option<&[u8]> {
    let len = usize::from(u16::from_le_bytes([image[at + 10], image[at + 11]]));
    let end = at + TAG_LEN + len;
    let is_in_one = at.is_multiple_of(BLOCK_MIN) || at / BLOCK_MIN == (end - 1) / BLOCK_MIN;
    image.get(at + TAG_LEN..end).filter(|_| len > 0 && is_in_one)
}

/// The checksum of a tag, of which its own byte is left out.
fn sum(image: &[u8], at: usize) -> u8 {
    let tag = image[at..at + TAG_LEN].iter();
    tag.fold(0, |sum: u8, byte| sum.wrapping_add(*byte)).wrapping_sub(image[at + 4])
}

fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc: u16, _| match crc >> 15 {
            0 => crc << 1,
            _ => crc << 1 ^ 0x1021,
        })
    })
}

pub(super) fn fields(image: &[u8]) -> Vec<Field> {
    let mut finder = Finder::new(image);
    for at in recognition(image) {
        finder.row("recognition", at, &[1; 7]);
    }
    for at in (0..image.len().saturating_sub(TAG_LEN)).step_by(ALIGN) {
        if let Some((ident, of, lens)) = head(image, at)
            && image[at + 4] == sum(image, at)
        {
            finder.row(of, at, &[2, 2, 1, 1, 2, 2, 2, 4]);
            finder.row(of, at + TAG_LEN, lens);
            for (_, far, lens) in FAR.into_iter().filter(|(own, ..)| *own == ident) {
                finder.row(of, at + far, lens);
            }
            behind(&mut finder, ident, at);
        }
    }
    finder.found
}

/// The figures behind a head.
fn behind(finder: &mut Finder<'_>, ident: u16, at: usize) {
    let entry = |lens: usize| at + lens - 8;
    match ident {
        6 => {
            let len = finder.offset(at + 264, 4).min(SECTOR);
            for map in (at + 440..at + 440 + len).step_by(2) {
                finder.row("partition map", map, &[2]);
            }
        }
        258 => words(finder, "allocation", at + 24, finder.offset(at + 20, 4)),
        261 | 266 => {
            let lens = if ident == 261 { 176 } else { 216 };
            finder.row("file entry", entry(lens), &[4, 4]);
            let attributes = finder.offset(entry(lens), 4).min(SECTOR);
            words(finder, "allocation", at + lens + attributes, finder.offset(entry(lens) + 4, 4));
        }
        _ => {}
    }
}

fn words(finder: &mut Finder<'_>, of: &'static str, at: usize, len: usize) {
    finder.row(of, at, &[4; WORDS_MAX][..(len / 4).min(WORDS_MAX)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_the_tools_are_right_already() {
        let folder = tempfile::tempdir().unwrap();
        for base in crate::corpus::images("udf", folder.path()).unwrap() {
            let is_whole = |&at: &usize| {
                let crc = covered(&base.bytes, at).map(|covered| crc(covered).to_le_bytes());
                head(&base.bytes, at).is_some() && crc.is_some_and(|crc| base.bytes[at + 8..at + 10] == crc)
            };
            let tags: Vec<usize> = (0..base.bytes.len()).step_by(512).filter(is_whole).collect();
            assert!(tags.len() > 10, "{}: {}", base.name, tags.len());
            let mut again = base.bytes.clone();
            tags.iter().for_each(|at| again[at + 8] ^= 1);
            // A sum is left, so the other is known to be wrong.
            tags.iter().for_each(|&at| again[at + 4] = sum(&again, at));
            assert!(again != base.bytes);
            repair(&mut again);
            let differs = (0..again.len()).find(|&at| again[at] != base.bytes[at]);
            assert_eq!(differs, None, "{}", base.name);
        }
    }
}

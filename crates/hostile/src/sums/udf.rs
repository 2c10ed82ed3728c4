//! Checksums of the descriptors of UDF, found by their tags and not by what leads to them.

const RECOGNITION: usize = 32 << 10;
const SECTOR: usize = 2048;
const TAG_LEN: usize = 16;
const BLOCK_MIN: usize = 512;
/// Tags stand at multiples of this.
const ALIGN: usize = 4;

/// Descriptors whose tags are looked for.
const IDENTS: [u16; 14] = [0, 1, 2, 3, 5, 6, 9, 256, 257, 258, 259, 261, 262, 266];

/// Returns true if the volume recognition sequence says so.
fn is_one(image: &[u8]) -> bool {
    recognition(image).any(|at| matches!(&image[at + 1..at + 6], b"BEA01" | b"NSR02" | b"NSR03" | b"TEA01"))
}

/// Offsets of its descriptors.
fn recognition(image: &[u8]) -> impl Iterator<Item = usize> {
    let end = image.len().min(RECOGNITION + 8 * SECTOR);
    (RECOGNITION..end.saturating_sub(SECTOR)).step_by(SECTOR).filter(|&at| image[at + 1] != 0)
}

/// Puts the checksums of descriptors right that have one of two left.
pub(super) fn repair(image: &mut [u8]) {
    if !is_one(image) {
        return;
    }
    // Descriptors within others come first.
    for at in (0..image.len().saturating_sub(TAG_LEN)).step_by(ALIGN).rev() {
        if !is_tag(image, at) {
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

/// Returns true if a tag may stand at `at`.
fn is_tag(image: &[u8], at: usize) -> bool {
    let Some(tag) = image.get(at..at + TAG_LEN) else { return false };
    if !matches!(tag[2], 2 | 3) || tag[3] != 0 || tag[5] != 0 {
        return false;
    }
    let ident = u16::from_le_bytes([tag[0], tag[1]]);
    // Numbers of others are rare among plain figures.
    if ident == 0 && image.get(at + TAG_LEN + 1..at + TAG_LEN + 20) != Some(b"*UDF Sparing Table\0") {
        return false;
    }
    IDENTS.contains(&ident)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_the_tools_are_right_already() {
        let folder = tempfile::tempdir().unwrap();
        for base in crate::corpus::images("udf", folder.path()).unwrap() {
            let is_whole = |&at: &usize| {
                let crc = covered(&base.bytes, at).map(|covered| crc(covered).to_le_bytes());
                is_tag(&base.bytes, at) && crc.is_some_and(|crc| base.bytes[at + 8..at + 10] == crc)
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

//! The figures of a recovery file: those of each page, and what the pages hold.

use super::{Field, row};

pub(crate) const MAGIC: &[u8] = b"PFSREC\0\x01";
pub(crate) const PAGE_LEN: usize = 4096;
/// Number, length of the image, length of a block, blocks of the image, blocks of recovery data.
const FIGURES: [usize; 5] = [4, 8, 4, 4, 4];
/// Offset of the checksums in a page; the first [`CHECKSUMS`] of them are fields.
const PAYLOAD_AT: usize = 96;
const CHECKSUMS: usize = 40;

/// Returns true if any page of one is there.
pub(super) fn is_one(file: &[u8]) -> bool {
    (0..file.len()).step_by(PAGE_LEN).any(|at| file[at..].starts_with(MAGIC))
}

pub(super) fn fields(file: &[u8]) -> Vec<Field> {
    let mut found = Vec::new();
    let pages = (0..file.len()).step_by(PAGE_LEN).filter(|&at| file[at..].starts_with(MAGIC));
    for at in pages {
        row(&mut found, "page", at + 8, &FIGURES);
        row(&mut found, "set", at + 32, &[8; 4]);
        row(&mut found, "checksum", at + PAYLOAD_AT, &[8; 2 * CHECKSUMS]);
    }
    // Which image it is of, and what happened to that.
    row(&mut found, "image", file.len().saturating_sub(2), &[1, 1]);
    found
}

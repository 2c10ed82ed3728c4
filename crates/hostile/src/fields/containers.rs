//! The figures of cloops and of partition tables. Those of cloops are big-endian, so each of their
//! bytes is a figure of its own.

use super::{Field, Finder};

/// Rows of an index that are taken.
const ROWS_MAX: usize = 64;
const BYTES: [usize; 8] = [1; 8];

/// Returns the fields of a cloop with its head in front.
pub(super) fn cloop(image: &[u8]) -> Vec<Field> {
    let mut finder = Finder::new(image);
    finder.row("version", 12, &[1, 1, 1]);
    finder.row("head", 128, &BYTES);
    let row_len = image.len().saturating_sub(136) / 8;
    for row in 0..row_len.min(ROWS_MAX) {
        finder.row("index", 136 + 8 * row, &BYTES);
    }
    finder.found
}

/// Returns the fields of a qcow2 image: header, tables, and snapshots.
pub(super) fn qcow2(image: &[u8]) -> Vec<Field> {
    let mut finder = Finder::new(image);
    let number = |at: usize| {
        let bytes = image.get(at..at.saturating_add(8)).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_be_bytes)
    };
    let offset = |at: usize| {
        usize::try_from(number(at) & 0x00ff_ffff_ffff_fe00).map_or(image.len(), |at| at.min(image.len()))
    };
    for at in (4..120).step_by(8) {
        finder.row("header", at, &BYTES);
    }
    let (l1, snapshots) = (offset(40), offset(64));
    for (of, at, rows) in [
        ("L1", l1, 2),
        ("L2", offset(l1), ROWS_MAX),
        ("snapshot", snapshots, 8),
        ("L1", offset(snapshots), 2),
    ] {
        for row in 0..rows {
            finder.row(of, at.saturating_add(8 * row), &BYTES);
        }
    }
    finder.found.retain(|field| field.at < image.len());
    finder.found
}

/// Returns the fields of a boot record and of those in its chain.
pub(super) fn boot_records(image: &[u8]) -> Vec<Field> {
    let mut finder = Finder::new(image);
    for at in (0..image.len().saturating_sub(511)).step_by(512).take(ROWS_MAX) {
        if is_boot_record(&image[at..]) {
            for row in 0..4 {
                finder.row("partition", at + 446 + 16 * row, &[1, 1, 1, 1, 1, 1, 1, 1, 4, 4]);
            }
        }
    }
    finder.found
}

/// Returns true if bytes begin with the two-byte signature of a boot record.
pub(super) fn is_boot_record(bytes: &[u8]) -> bool {
    bytes.get(510..512) == Some(&[0x55, 0xaa])
}

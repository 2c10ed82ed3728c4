//! The figures of an XFS image: structures are found by their magics, wherever they begin.

use super::{Field, Finder};
use std::ops::Range;

const MAGIC: &[u8] = b"XFSB";
/// First bytes of a record of the log.
const RECORD: &[u8] = b"\xfe\xed\xba\xbe";
/// Operations of a record whose figures are taken.
const OPERATIONS_MAX: u32 = 400;
/// Bytes of a structure whose figures are taken; more of them are records like those before.
const TAKEN: usize = 160;

/// Kind of a structure, its length, and the place of its checksum in version 5.
struct Found {
    of: &'static str,
    at: usize,
    len: usize,
    sum_at: Option<usize>,
}

/// Returns true if an image begins like one.
pub(super) fn is_one(image: &[u8]) -> bool {
    image.starts_with(MAGIC)
}

/// Puts the checksums of all structures right.
pub(crate) fn repair(image: &mut [u8]) {
    if !is_one(image) || image.len() < 4096 {
        return;
    }
    for Found { at, len, sum_at, .. } in structures(image) {
        let (Some(sum_at), Some(bytes)) = (sum_at, image.get_mut(at..at + len)) else { continue };
        bytes[sum_at..sum_at + 4].fill(0);
        let sum = crc32c(bytes);
        bytes[sum_at..sum_at + 4].copy_from_slice(&sum.to_le_bytes());
    }
    for at in records(image) {
        let Some(sum) = record_sum(image, at) else { continue };
        image[at + 32..at + 36].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Returns the places of records of the log that have sums.
fn records(image: &[u8]) -> Vec<usize> {
    let is_one = |at: &usize| image[*at..].starts_with(RECORD) && image[at + 32..at + 36] != [0; 4];
    (0..image.len() - 511).step_by(512).filter(is_one).collect()
}

/// Returns the checksum of a record whose header fills one sector; `None` for one that is cut off.
fn record_sum(image: &[u8], at: usize) -> Option<u32> {
    let len = u32::from_be_bytes(std::array::from_fn(|index| image[at + 12 + index]));
    let data = image.get(at + 512..at.checked_add(512)?.checked_add(usize::try_from(len).ok()?)?)?;
    let header = [&image[at..at + 32], &[0; 4], &image[at + 36..at + 328]].concat();
    Some(crc32c(&[&header, data].concat()))
}

/// Finds the operations of a record, and the first figures of what they hold.
fn operations(finder: &mut Finder<'_>, image: &[u8], record: usize) {
    let figure = |at: usize| image.get(at..at + 4).map(|bytes| u32::from_be_bytes(bytes.try_into().unwrap()));
    let count = figure(record + 40).unwrap_or(0).min(OPERATIONS_MAX);
    let mut at = record + 512;
    for _ in 0..count {
        let Some(len) = figure(at + 4).and_then(|len| usize::try_from(len).ok()) else { return };
        if at + 12 + len > image.len() {
            return;
        }
        words(finder, "operation", at, 12);
        // Figures of descriptions are those of the machine.
        words(finder, "change", at + 12, len.min(TAKEN) & !3);
        at += 12 + len;
    }
}

pub(super) fn fields(image: &[u8]) -> Vec<Field> {
    let mut finder = Finder::new(image);
    for Found { of, at, len, .. } in structures(image) {
        // Figures are big-endian, so they are taken byte by byte as well.
        let taken = len.min(TAKEN + 32);
        let skip: Vec<Range<usize>> = match of {
            // Unused places for journals of changes, and sums, decide nothing.
            "inode" => vec![Range { start: 0, end: 100 }],
            "log" => vec![0..48, 512..560],
            _ => vec![Range { start: 0, end: TAKEN }],
        };
        for range in skip {
            words(&mut finder, of, at + range.start, range.len().min(taken));
        }
        if of == "inode" {
            words(&mut finder, of, at + 120, 8);
            let core = if image[at + 4] == 3 { 176 } else { 100 };
            words(&mut finder, "fork", at + core, 40);
            let attrs = usize::from(image[at + 82]) * 8;
            if attrs > 0 {
                words(&mut finder, "fork", at + core + attrs, 24);
            }
        }
        if of == "log" {
            operations(&mut finder, image, at);
        }
        if of == "directory" {
            words(&mut finder, of, at + len - 24, 24);
        }
    }
    finder.found
}

fn words(finder: &mut Finder<'_>, of: &'static str, at: usize, len: usize) {
    finder.row(of, at, &vec![4; len / 4]);
    finder.row(of, at, &vec![1; len]);
}

/// Finds structures at multiples of 256 bytes, the shortest inode.
fn structures(image: &[u8]) -> Vec<Found> {
    if image.len() < 4096 {
        return Vec::new();
    }
    let log_of = |at: usize, max: u8| 1_usize << image[at].clamp(8, max);
    let (block_len, sector_len, inode_len) = (log_of(120, 16), log_of(121, 12), log_of(122, 11));
    let dir_len = block_len << image[192].min(16 - image[120].clamp(8, 16));
    let is_v5 = image[101] & 15 == 5;
    // Copies of structures in the log have sums that are not up to date.
    let log_at = u64::from_be_bytes(std::array::from_fn(|index| image[48 + index]));
    let log_at = usize::try_from(log_at).unwrap_or(0).saturating_mul(block_len);
    let mut found = Vec::new();
    for at in (0..image.len() - 255).step_by(256) {
        if log_at > 0 && at >= log_at && !image[at..].starts_with(b"\xfe\xed\xba\xbe") {
            continue;
        }
        let (head, kind) = (&image[at..at + 4], &image[at + 8..at + 10]);
        let row = match head {
            b"XFSB" => ("superblock", sector_len, Some(224)),
            b"XAGF" => ("group header", sector_len, Some(216)),
            b"XAGI" => ("group header", sector_len, Some(312)),
            b"XAFL" => ("group header", sector_len, Some(32)),
            b"XDB3" | b"XDD3" | b"XD2B" | b"XD2D" => ("directory", dir_len, Some(4)),
            b"XDF3" | b"XD2F" => ("free index", dir_len, Some(4)),
            b"BMA3" | b"BMAP" => ("extent tree", block_len, Some(64)),
            b"XSLM" => {
                // One header for all blocks of an extent.
                let len = 56 + usize::from(image[at + 10]) * 256 + usize::from(image[at + 11]);
                ("link target", len.next_multiple_of(block_len), Some(12))
            }
            b"XARM" => ("value", block_len, Some(12)),
            b"\xfe\xed\xba\xbe" => ("log", 1024, None),
            b"AB3B" | b"AB3C" | b"ABTB" | b"ABTC" | b"IAB3" | b"IABT" | b"FIB3" | b"FIBT" | b"RMB3"
            | b"R3FC" => ("tree", block_len, Some(52)),
            [b'I', b'N', ..] if matches!(image[at + 4], 1..=3) => ("inode", inode_len, Some(100)),
            _ => match kind {
                b"\x3b\xee" | b"\xfb\xee" | b"\x3e\xbe" | b"\xfe\xbe" => ("hash tree", block_len, Some(12)),
                b"\x3d\xf1" | b"\xd2\xf1" | b"\x3d\xff" | b"\xd2\xff" => ("hash tree", dir_len, Some(12)),
                _ => continue,
            },
        };
        let (of, len, sum_at) = row;
        let sum_at = sum_at.filter(|sum_at| is_v5 && sum_at + 4 <= len);
        if at + len <= image.len() {
            found.push(Found { of, at, len, sum_at });
        }
    }
    found
}

/// CRC-32C of a byte, for each byte.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < table.len() {
        let (mut crc, mut bit) = (index as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| TABLE[(crc as u8 ^ byte) as usize] ^ crc >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_xfs_are_right_already() {
        let folder = tempfile::tempdir().unwrap();
        let bases = crate::corpus::images("xfs", folder.path()).unwrap();
        let mut count = 0;
        for base in bases {
            for found in structures(&base.bytes) {
                let mut again = base.bytes.clone();
                if let Some(sum_at) = found.sum_at {
                    again[found.at + sum_at] ^= 1;
                    repair(&mut again);
                    assert!(again == base.bytes, "{}: {} at {:#x}", base.name, found.of, found.at);
                    count += 1;
                }
            }
        }
        assert!(count > 60, "{count}");
        let log = crate::corpus::images("xfs", folder.path()).unwrap().pop().unwrap().bytes;
        let records = records(&log);
        assert!(records.len() > 3, "{records:?}");
        for at in records {
            let stored = u32::from_le_bytes(log[at + 32..at + 36].try_into().unwrap());
            assert_eq!(record_sum(&log, at), Some(stored));
        }
    }
}

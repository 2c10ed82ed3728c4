//! Checksums of XFS: structures are found by their magics, wherever they begin.

use packfs_format::crc32c;

const MAGIC: &[u8] = b"XFSB";
/// First bytes of a record of the log.
const RECORD: &[u8] = b"\xfe\xed\xba\xbe";

/// A structure: its offset and length, and the offset of its checksum in it.
struct Found {
    at: usize,
    len: usize,
    sum_at: usize,
}

/// Returns true if an image begins like one.
fn is_one(image: &[u8]) -> bool {
    image.starts_with(MAGIC)
}

/// Puts the checksums of all structures right.
pub(super) fn repair(image: &mut [u8]) {
    if !is_one(image) || image.len() < 4096 {
        return;
    }
    for Found { at, len, sum_at } in structures(image) {
        let Some(bytes) = image.get_mut(at..at + len) else { continue };
        bytes[sum_at..sum_at + 4].fill(0);
        let sum = !crc32c(!0, bytes);
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
    Some(!crc32c(!0, &[&header, data].concat()))
}

/// Finds structures at multiples of 256 bytes, the shortest inode.
fn structures(image: &[u8]) -> Vec<Found> {
    if image.len() < 4096 || image[101] & 15 != 5 {
        return Vec::new();
    }
    let log_of = |at: usize, max: u8| 1_usize << image[at].clamp(8, max);
    let (block_len, sector_len, inode_len) = (log_of(120, 16), log_of(121, 12), log_of(122, 11));
    let dir_len = block_len << image[192].min(16 - image[120].clamp(8, 16));
    // Copies of structures in the log have sums that are not up to date.
    let log_at = u64::from_be_bytes(std::array::from_fn(|index| image[48 + index]));
    let log_at = usize::try_from(log_at).unwrap_or(0).saturating_mul(block_len);
    let mut found = Vec::new();
    for at in (0..image.len() - 255).step_by(256) {
        if log_at > 0 && at >= log_at {
            break;
        }
        let (head, kind) = (&image[at..at + 4], &image[at + 8..at + 10]);
        let (len, sum_at) = match head {
            b"XFSB" => (sector_len, 224),
            b"XAGF" => (sector_len, 216),
            b"XAGI" => (sector_len, 312),
            b"XAFL" => (sector_len, 32),
            b"XDB3" | b"XDD3" | b"XDF3" => (dir_len, 4),
            b"BMA3" => (block_len, 64),
            b"XSLM" => {
                // One header for all blocks of an extent.
                let len = 56 + usize::from(image[at + 10]) * 256 + usize::from(image[at + 11]);
                (len.next_multiple_of(block_len), 12)
            }
            b"XARM" => (block_len, 12),
            b"AB3B" | b"AB3C" | b"IAB3" | b"FIB3" | b"RMB3" | b"R3FC" => (block_len, 52),
            [b'I', b'N', ..] if matches!(image[at + 4], 1..=3) => (inode_len, 100),
            _ => match kind {
                b"\x3b\xee" | b"\x3e\xbe" => (block_len, 12),
                b"\x3d\xf1" | b"\x3d\xff" => (dir_len, 12),
                _ => continue,
            },
        };
        if sum_at + 4 <= len && at + len <= image.len() {
            found.push(Found { at, len, sum_at });
        }
    }
    found
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
                again[found.at + found.sum_at] ^= 1;
                repair(&mut again);
                assert!(again == base.bytes, "{}: {:#x}", base.name, found.at);
                count += 1;
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

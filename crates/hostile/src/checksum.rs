//! Puts right what would otherwise refuse a mutated image before anything else of it is looked at.

use crate::fields::recovery::{MAGIC, PAGE_LEN};
use sha2::{Digest, Sha256};

/// Where an EROFS superblock starts.
const EROFS_AT: usize = 1024;
const EROFS_MAGIC: [u8; 4] = 0xE0F5_E1E2_u32.to_le_bytes();

/// Puts the checksum of an EROFS superblock right; SquashFS has none. The pages of a recovery file get the figures of the first one, and hashes
/// that fit. Whatever is neither stays as it is.
pub fn repair(image: &mut [u8]) {
    unite_pages(image);
    reseal(image);
}

/// The same, but pages of a recovery file only get hashes that fit them, and may contradict each other.
pub(crate) fn reseal(image: &mut [u8]) {
    for at in pages(image) {
        let (body, hash) = image[at..at + PAGE_LEN].split_at_mut(PAGE_LEN - 32);
        hash.copy_from_slice(&Sha256::digest(body));
    }
    repair_erofs(image);
}

/// Where whole pages of a recovery file stand.
fn pages(file: &[u8]) -> Vec<usize> {
    let starts = (0..file.len()).step_by(PAGE_LEN);
    starts.filter(|&at| at + PAGE_LEN <= file.len() && file[at..].starts_with(MAGIC)).collect()
}

/// Has all pages say what the first one says, and hash that with their checksums: see docs/formats/recovery.md.
fn unite_pages(file: &mut [u8]) {
    let pages = pages(file);
    let Some(&first) = pages.first() else { return };
    let figures: [u8; 20] = std::array::from_fn(|index| file[first + 12 + index]);
    let count = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| figures[at + index]));
    let mut left = count(12).saturating_add(count(16)) as usize;
    let mut set = Sha256::new_with_prefix(figures);
    for &at in &pages {
        let part = left.min(248);
        set.update(&file[at + 96..at + 96 + 16 * part]);
        left -= part;
    }
    let set = set.finalize();
    for at in pages {
        file[at + 12..at + 32].copy_from_slice(&figures);
        file[at + 32..at + 64].copy_from_slice(&set);
    }
}

fn repair_erofs(image: &mut [u8]) {
    let Some(head) = image.get(EROFS_AT..EROFS_AT + 16) else { return };
    if head[..4] != EROFS_MAGIC {
        return;
    }
    let block_bits = u32::from(head[12]).clamp(9, 16);
    let block_len = 1_usize << block_bits;
    // The sum covers the rest of the block that the superblock lies in.
    let end = if block_len > EROFS_AT { block_len } else { EROFS_AT + block_len };
    let end = end.min(image.len());
    image[EROFS_AT + 4..EROFS_AT + 8].fill(0);
    let sum = crc32c(&image[EROFS_AT..end]);
    image[EROFS_AT + 4..EROFS_AT + 8].copy_from_slice(&sum.to_le_bytes());
}

/// CRC-32C without the final inversion.
fn crc32c(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_packfs_wrote_is_right_already() {
        let folder = tempfile::tempdir().unwrap();
        let bases = crate::corpus::images("erofs", folder.path()).unwrap();
        let summed = bases.iter().filter(|base| base.bytes[EROFS_AT + 8] & 1 == 1);
        let mut count = 0;
        for base in summed {
            let mut again = base.bytes.clone();
            again[EROFS_AT + 4] ^= 1;
            repair(&mut again);
            assert!(again == base.bytes, "{}", base.name);
            count += 1;
        }
        assert!(count > 10);
    }

    #[test]
    fn what_is_too_short_stays_as_it_is() {
        for len in [0, 3, 1024, 1039, 1040] {
            repair(&mut vec![0xe2; len]);
        }
    }
}

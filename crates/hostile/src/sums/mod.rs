//! Puts right what would otherwise refuse a mutated image before anything else of it is looked at.

mod btrfs;
mod cramfs;
mod disks;
mod ext;
mod romfs;
mod udf;
mod xfs;

use crate::fields::{MAGIC, PAGE_LEN};
use packfs_format::crc32c;
use sha2::{Digest, Sha256};

pub(crate) use disks::repair as repair_disk;

/// Offset of an EROFS superblock.
const EROFS_AT: usize = 1024;
const EROFS_MAGIC: [u8; 4] = 0xE0F5_E1E2_u32.to_le_bytes();

/// Puts the checksums of an EROFS superblock, of a cramfs image, of the metadata of ext4, of
/// descriptors of UDF, and of a boot catalog of ISO 9660 right; SquashFS has none. The pages of a
/// recovery file get the figures of the first one, and hashes that fit. Whatever is none of these
/// stays as it is.
pub fn repair(image: &mut [u8]) {
    unite_pages(image);
    reseal(image);
}

/// The same, but pages of a recovery file only get hashes that fit them, and may contradict each
/// other.
pub(crate) fn reseal(image: &mut [u8]) {
    for at in pages(image) {
        let (body, hash) = image[at..at + PAGE_LEN].split_at_mut(PAGE_LEN - 32);
        hash.copy_from_slice(&Sha256::digest(body));
    }
    repair_erofs(image);
    repair_boot_catalog(image);
    let further =
        [cramfs::repair, romfs::repair, udf::repair, ext::repair, xfs::repair, btrfs::repair, disks::repair];
    further.into_iter().for_each(|repair| repair(image));
}

/// Returns the offsets of whole pages of a recovery file.
fn pages(file: &[u8]) -> Vec<usize> {
    let starts = (0..file.len()).step_by(PAGE_LEN);
    starts.filter(|&at| at + PAGE_LEN <= file.len() && file[at..].starts_with(MAGIC)).collect()
}

/// Has all pages say what the first one says, and hash that with their checksums: see
/// docs/formats/recovery.md.
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
    let sum = crc32c(!0, &image[EROFS_AT..end]);
    image[EROFS_AT + 4..EROFS_AT + 8].copy_from_slice(&sum.to_le_bytes());
}

/// Length of a sector of ISO 9660.
const SECTOR_LEN: usize = 2048;
/// Offset of a boot record, if there is one.
const BOOT_RECORD_AT: usize = 17 * SECTOR_LEN;

/// All words of the first row add up to 0.
fn repair_boot_catalog(image: &mut [u8]) {
    let Some(record) = image.get(BOOT_RECORD_AT..BOOT_RECORD_AT + 75) else { return };
    if record[..6] != *b"\0CD001" {
        return;
    }
    let at = u32::from_le_bytes(std::array::from_fn(|index| record[71 + index])) as usize * SECTOR_LEN;
    let Some(row) = image.get_mut(at..at + 32) else { return };
    if row[0] != 1 || row[30..] != [0x55, 0xaa] {
        return;
    }
    row[28..30].fill(0);
    let words = row.chunks_exact(2).map(|word| u16::from_le_bytes([word[0], word[1]]));
    let sum = words.fold(0, u16::wrapping_sub);
    row[28..30].copy_from_slice(&sum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_packed_images_are_right_already() {
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
    fn sums_of_boot_catalogs_are_right_already() {
        let folder = tempfile::tempdir().unwrap();
        let bases = crate::corpus::images("iso9660", folder.path()).unwrap();
        let base = bases.iter().find(|base| base.name.contains(" boot=")).unwrap();
        let record = base.bytes[BOOT_RECORD_AT + 71..].first_chunk().unwrap();
        let mut again = base.bytes.clone();
        again[u32::from_le_bytes(*record) as usize * SECTOR_LEN + 28] ^= 1;
        assert!(again != base.bytes);
        repair(&mut again);
        assert!(again == base.bytes);
    }

    #[test]
    fn sums_of_btrfs_are_right_already() {
        let folder = tempfile::tempdir().unwrap();
        for base in crate::corpus::images("btrfs", folder.path()).unwrap() {
            let mut again = base.bytes.clone();
            again[64 << 10] ^= 1;
            repair(&mut again);
            assert!(again == base.bytes, "{}", base.name);
        }
    }

    #[test]
    fn too_short_inputs_stay_unchanged() {
        for len in [0, 3, 1024, 1039, 1040] {
            repair(&mut vec![0xe2; len]);
        }
        let magic = 0x28cd_3d45_u32.to_le_bytes();
        for len in [4, 36, 75, 76, 100] {
            let mut image = magic.repeat(25);
            image.truncate(len);
            repair(&mut image);
        }
    }
}

//! The checksum of a cramfs image, of either byte order.

const MAGIC: u32 = 0x28cd_3d45;
/// Offsets that a superblock may have.
const STARTS: [usize; 2] = [0, 512];
const SUPER_LEN: usize = 76;
const VERSION_2: u32 = 1;
/// Offset of the checksum's word in a superblock.
const SUM_AT: usize = 32;

/// Puts the checksum right, which covers the image from its superblock to its recorded end, or to
/// the end of the file, the word that it stands in being 0.
pub(super) fn repair(image: &mut [u8]) {
    for start in STARTS {
        let Some(head) = image.get(start..start + SUPER_LEN) else { return };
        let word = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
        let is_big = word(0) == MAGIC.to_be_bytes();
        if !is_big && word(0) != MAGIC.to_le_bytes() {
            continue;
        }
        let of = |bytes| if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
        let end = (of(word(4)) as usize).min(image.len());
        if of(word(8)) & VERSION_2 != 0 && end >= start + SUPER_LEN {
            let sum = start + SUM_AT..start + SUM_AT + 4;
            image[sum.clone()].fill(0);
            let found = crc32fast::hash(&image[start..end]);
            image[sum].copy_from_slice(&if is_big { found.to_be_bytes() } else { found.to_le_bytes() });
        }
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_cramfs_are_right_already() {
        let folder = tempfile::tempdir().unwrap();
        let bases = crate::corpus::images("cramfs", folder.path()).unwrap();
        let mut count = 0;
        for base in &bases {
            let mut again = base.bytes.clone();
            for start in STARTS {
                again[start + SUM_AT] ^= u8::from(again[start + 16..].starts_with(b"Compressed ROMFS"));
            }
            count += u32::from(again != base.bytes);
            repair(&mut again);
            assert!(again == base.bytes || base.name.contains("-v1-"), "{}", base.name);
        }
        assert!(count >= 5, "{count}");
    }
}

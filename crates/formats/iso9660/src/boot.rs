//! El Torito: images that firmware can boot.
//!
//! Owns the boot catalog. Invariant: the number of entries of a catalog is bounded.

use crate::corruption::Place;
use crate::disk::*;
use crate::volume::Iso9660Volume;
use packfs_core::{Result, usize_of};
use packfs_format::{structure, units::*};

/// Limit of catalog entries: those of one sector.
const ENTRIES_MAX: usize = (SECTOR_LEN / 32) as usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BootImage {
    pub(crate) platform: u8,
    pub(crate) entry: BootEntry,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) images: Vec<BootImage>,
    pub(crate) faults: Vec<&'static str>,
}

impl BootImage {
    pub(crate) fn start(&self) -> u64 {
        u64::from(self.entry.at.get()) * SECTOR_LEN
    }

    pub(crate) fn loaded_len(&self) -> u64 {
        u64::from(self.entry.sector_count.get()) * 512
    }

    pub(crate) fn words(&self) -> String {
        let platform = match self.platform {
            0 => "x86".to_owned(),
            1 => "PowerPC".to_owned(),
            2 => "Mac".to_owned(),
            0xef => "EFI".to_owned(),
            other => format!("platform {other:#x}"),
        };
        let media = match self.entry.media & 0xf {
            0 => "no emulation",
            1 => "1.2M floppy",
            2 => "1.44M floppy",
            3 => "2.88M floppy",
            4 => "hard disk",
            _ => "unknown emulation",
        };
        let bootable = if self.entry.indicator == CATALOG_BOOTABLE { "" } else { ", not bootable" };
        let (at, sectors) = (self.entry.at, self.entry.sector_count);
        format!("{platform}, {media}, {sectors} sectors of 512 bytes at block {at}{bootable}")
    }
}

impl Iso9660Volume {
    pub(crate) fn boot_catalog(&self) -> Result<Catalog> {
        let mut catalog = Catalog::default();
        let Some((_, block)) = self.geometry.catalog else { return Ok(catalog) };
        let at = u64::from(block) * SECTOR_LEN;
        let mut bytes = [0; usize_of(SECTOR_LEN)];
        let len = usize_of(SECTOR_LEN.min(left(self.geometry.image_len, at)));
        if let Some(bytes) = bytes.get_mut(..len) {
            self.sectors.read(Place::at("boot catalog", at), bytes)?;
        }
        catalog.take(&bytes);
        Ok(catalog)
    }
}

impl Catalog {
    fn take(&mut self, bytes: &[u8]) {
        let mut entries = bytes.chunks_exact(32);
        let Some(first) = entries.next() else { return };
        let Some(validation) = structure::<BootValidation>(first, 0) else { return };
        if validation.header_id != CATALOG_VALIDATION || validation.key != [0x55, 0xaa] {
            self.faults.push("no validation entry");
            return;
        }
        let words = first.chunks_exact(2).map(|word| match *word {
            [low, high] => u16::from_le_bytes([low, high]),
            _ => 0,
        });
        if words.fold(0, u16::wrapping_add) != 0 {
            self.faults.push("a wrong checksum of the validation entry");
        }
        let mut platform = validation.platform;
        // The first entry, then those of sections.
        let (mut left, mut is_last) = (1_u16, false);
        for bytes in entries.take(ENTRIES_MAX) {
            let Some(entry) = structure::<BootEntry>(bytes, 0) else { return };
            if let Some(fewer) = left.checked_sub(1) {
                if entry.indicator != CATALOG_EXTENSION {
                    self.images.push(BootImage { platform, entry });
                    left = fewer;
                }
                continue;
            }
            match entry.indicator {
                CATALOG_EXTENSION => {}
                CATALOG_SECTION | CATALOG_SECTION_LAST if !is_last => {
                    let Some(section) = structure::<BootSection>(bytes, 0) else { return };
                    (platform, left) = (section.platform, section.count.get());
                    is_last = section.header_id == CATALOG_SECTION_LAST;
                }
                _ => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_lists_its_first_image_and_those_of_sections() {
        let mut bytes = vec![0; 2048];
        bytes[..2].copy_from_slice(&[1, 0]);
        bytes[30..32].copy_from_slice(&[0x55, 0xaa]);
        // Words add up to zero.
        bytes[28..30].copy_from_slice(&0x55a9_u16.wrapping_add(1).wrapping_add(0).to_le_bytes());
        let sum = |bytes: &[u8]| {
            bytes[..32]
                .chunks(2)
                .fold(0_u16, |sum, word| sum.wrapping_add(u16::from_le_bytes([word[0], word[1]])))
        };
        let rest = 0_u16.wrapping_sub(sum(&bytes).wrapping_sub(u16::from_le_bytes([bytes[28], bytes[29]])));
        bytes[28..30].copy_from_slice(&rest.to_le_bytes());
        bytes[32..44].copy_from_slice(&[0x88, 0, 0, 0, 0, 0, 4, 0, 30, 0, 0, 0]);
        bytes[64..68].copy_from_slice(&[0x91, 0xef, 1, 0]);
        bytes[96..108].copy_from_slice(&[0x88, 0, 0, 0, 0, 0, 1, 0, 40, 0, 0, 0]);
        bytes[128..132].copy_from_slice(&[0x91, 0xef, 1, 0]);
        let mut catalog = Catalog::default();
        catalog.take(&bytes);
        let words: Vec<_> = catalog.images.iter().map(BootImage::words).collect();
        assert_eq!(
            words,
            [
                "x86, no emulation, 4 sectors of 512 bytes at block 30",
                "EFI, no emulation, 1 sectors of 512 bytes at block 40"
            ]
        );
        assert_eq!(catalog.faults, [""; 0]);
        bytes[28] ^= 1;
        let mut wrong = Catalog::default();
        wrong.take(&bytes);
        assert_eq!((wrong.images.len(), wrong.faults.len()), (2, 1));
        bytes[30] = 0;
        let mut none = Catalog::default();
        none.take(&bytes);
        assert_eq!((none.images.len(), none.faults), (0, vec!["no validation entry"]));
    }
}

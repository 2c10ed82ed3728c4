//! The boot catalog, and its boot record (El Torito).

use super::stored::{Store, sector};
use crate::disk::*;
use crate::options::BootSectors;
use packfs_core::{Error, NodeId, Result};
use zerocopy::{FromZeros, IntoBytes};

const PLATFORM_X86: u8 = 0;
const PLATFORM_EFI: u8 = 0xef;

/// A file that firmware should boot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub node: NodeId,
    pub is_efi: bool,
}

pub(super) fn record(catalog: u32) -> Vec<u8> {
    let mut record = vec![0; SECTOR_LEN as usize];
    record[0] = BOOT_RECORD;
    record[1..6].copy_from_slice(&STANDARD_ID);
    record[6] = 1;
    record[7..7 + EL_TORITO_ID.len()].copy_from_slice(EL_TORITO_ID);
    record[71..75].copy_from_slice(&catalog.to_le_bytes());
    record
}

/// Returns the catalog: the first image, then a section for each other.
///
/// Errors: `Failed` for an image that could not be stored uncompressed.
pub(super) fn catalog(store: &Store<'_>, images: &[Wanted]) -> Result<Vec<u8>> {
    let Some((first, others)) = images.split_first() else { return Ok(Vec::new()) };
    let mut validation = BootValidation::new_zeroed();
    validation.header_id = CATALOG_VALIDATION;
    validation.platform = platform(first);
    validation.key = [0x55, 0xaa];
    let words = validation.as_bytes().chunks_exact(2).map(|word| u16::from_le_bytes([word[0], word[1]]));
    validation.checksum = words.fold(0, u16::wrapping_sub).into();
    let mut catalog = [validation.as_bytes(), entry(store, first)?.as_bytes()].concat();
    for (index, image) in others.iter().enumerate() {
        let is_last = index + 1 == others.len();
        let mut section = BootSection::new_zeroed();
        section.header_id = if is_last { CATALOG_SECTION_LAST } else { CATALOG_SECTION };
        section.platform = platform(image);
        section.count = 1.into();
        catalog.extend_from_slice(section.as_bytes());
        catalog.extend_from_slice(entry(store, image)?.as_bytes());
    }
    catalog.resize(SECTOR_LEN as usize, 0);
    Ok(catalog)
}

fn platform(image: &Wanted) -> u8 {
    if image.is_efi { PLATFORM_EFI } else { PLATFORM_X86 }
}

fn entry(store: &Store<'_>, image: &Wanted) -> Result<BootEntry> {
    let stored = store.stored(image.node);
    if stored.len == 0 || stored.decoded_len.is_some() {
        let path = store.tree.path(image.node);
        return Err(Error::failed(format!("boot image {path:?} is not stored uncompressed")));
    }
    // EFI firmware takes the length from the file system.
    let sectors = match store.options.boot_sectors {
        BootSectors::Count(count) if !image.is_efi => count,
        _ => u16::try_from(stored.len.div_ceil(512)).unwrap_or(if image.is_efi { 0 } else { u16::MAX }),
    };
    let mut entry = BootEntry::new_zeroed();
    entry.indicator = CATALOG_BOOTABLE;
    entry.sector_count = sectors.into();
    entry.at = sector(stored.start)?.into();
    Ok(entry)
}

//! Labels and headers of physical volumes, and the newest text in their metadata areas.

use crate::corruption::Corruption;
use crate::disk::*;
use packfs_core::{ErrorKind, Image, Result, range_at, usize_of};
use packfs_format::{read_structure, split_structure, structure, structures, units::*};
use std::ops::Range;

const LABEL_SECTORS: u64 = 4;
/// Longest text: LVM2 creates areas of 1 MiB.
const TEXT_MAX: u64 = 4 << 20;
const AREAS_MAX: usize = 16;
/// First byte of a label that its checksum covers.
const SUMMED_AT: usize = 20;

pub(crate) fn find(image: &dyn Image) -> Result<Option<(u64, Label)>> {
    for sector in 0..LABEL_SECTORS {
        let at = sector.times(SECTOR_LEN);
        if range_at(at, SECTOR_LEN).end > image.len() {
            break;
        }
        let label: Label = read_structure(image, at)?;
        if label.id == LABEL && label.kind == LABEL_KIND && label.sector.get() == sector {
            return Ok(Some((at, label)));
        }
    }
    Ok(None)
}

pub(crate) struct Physical {
    pub(crate) uuid: String,
    /// Length of the device that it was created on.
    pub(crate) device_len: u64,
    areas: Vec<Range<u64>>,
    pub(crate) label: Range<u64>,
    /// A wrong checksum of the label.
    pub(crate) label_fault: Option<Corruption>,
}

/// CRC-32 of LVM2, with another seed, and without inversions.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(!CHECKSUM_SEED);
    hasher.update(bytes);
    !hasher.finalize()
}

impl Physical {
    /// Reads label and header.
    ///
    /// Errors: `Corrupt`, `Io`.
    pub(crate) fn read(image: &dyn Image) -> Result<Physical> {
        let (at, label) = find(image)?.ok_or(Corruption::NoLabel)?;
        let found = label.offset.get();
        let mut sector = vec![0; usize_of(SECTOR_LEN)];
        image.read_exact_at(at, &mut sector)?;
        let rest = sector.get(usize_of(found.into())..).filter(|_| found >= 32);
        let Some((header, lists)) = rest.and_then(split_structure::<Header>) else {
            return Err(Corruption::LabelOffset { found }.into());
        };
        let mut rows = structures::<Area>(lists);
        // Data first, then metadata, each list terminated by zeros.
        for _ in rows.by_ref().take(AREAS_MAX).take_while(|area| area.at.get() != 0) {}
        let metadata = rows.take(AREAS_MAX).take_while(|area| area.at.get() != 0);
        let areas = metadata.map(|area| range_at(area.at.get(), area.len.get())).collect();
        let found = label.checksum.get();
        let computed = checksum(sector.within(SUMMED_AT..));
        let label_fault = (found != computed).then_some(Corruption::LabelChecksum { found, computed });
        let (uuid, device_len) = (text_of(&header.uuid), header.device_len.get());
        Ok(Physical { uuid, device_len, areas, label: range_at(at, SECTOR_LEN), label_fault })
    }

    pub(crate) fn areas(&self) -> &[Range<u64>] {
        &self.areas
    }

    /// Returns the texts of its used areas, or their faults.
    ///
    /// Errors: `Io`.
    pub(crate) fn texts(&self, image: &dyn Image) -> Result<Vec<Result<Vec<u8>>>> {
        let mut texts = Vec::new();
        for area in &self.areas {
            match area_text(image, area) {
                Ok(text) => texts.extend(text.map(Ok)),
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                Err(error) => texts.push(Err(error)),
            }
        }
        Ok(texts)
    }
}

fn text_of(bytes: &[u8]) -> String {
    packfs_core::escaped(bytes).to_string()
}

fn area_text(image: &dyn Image, area: &Range<u64>) -> Result<Option<Vec<u8>>> {
    let (at, limit) = (area.start, image.len());
    let len = packfs_core::len_of(area);
    if area.end > limit || len < AREA_HEADER_LEN as u64 {
        return Err(Corruption::AreaPlace { at, len, limit }.into());
    }
    let mut bytes = vec![0; AREA_HEADER_LEN];
    image.read_exact_at(at, &mut bytes)?;
    let Some(header) = structure::<AreaHeader>(&bytes, 0) else {
        return Err(Corruption::AreaMagic { at }.into());
    };
    if header.magic != AREA_MAGIC {
        return Err(Corruption::AreaMagic { at }.into());
    }
    let found = header.checksum.get();
    let computed = checksum(bytes.within(4..));
    if found != computed {
        return Err(Corruption::AreaChecksum { at, found, computed }.into());
    }
    let (text_at, text_len) = (header.text_at.get(), header.text_len.get());
    if text_at == 0 || text_len == 0 || header.flags.get() & IGNORED != 0 {
        return Ok(None);
    }
    let max = TEXT_MAX.min(left(len, AREA_HEADER_LEN as u64));
    if text_len > max || !(AREA_HEADER_LEN as u64..len).contains(&text_at) {
        return Err(Corruption::TextPlace { at: text_at, len: text_len, max }.into());
    }
    // The area is a ring: a text continues after its header.
    let mut text = vec![0; usize_of(text_len)];
    let (first, second) = text.split_at_mut(usize_of(text_len.min(len.minus(text_at))));
    image.read_exact_at(end_of(at, text_at), first)?;
    image.read_exact_at(end_of(at, AREA_HEADER_LEN as u64), second)?;
    let (found, computed) = (header.text_checksum.get(), checksum(&text));
    if found != computed {
        return Err(Corruption::TextChecksum { found, computed }.into());
    }
    Ok(Some(text))
}

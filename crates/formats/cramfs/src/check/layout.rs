//! Checks of the image as a whole: the superblock's words, the checksum, unused space, padding.

use crate::disk::*;
use crate::volume::CramfsVolume;
use packfs_core::{Result, usize_of};
use packfs_format::check::Report;

/// Read at once.
const PART_LEN: u64 = 1 << 16;
/// Most of the space after an image that is looked at.
const BEHIND_LEN_MAX: u64 = 1 << 20;

impl CramfsVolume {
    pub(super) fn check_super_block(&self, report: &mut Report<'_>) {
        let geometry = &self.geometry;
        let super_block = &geometry.super_block;
        if super_block.signature != *CRAMFS_SIGNATURE && !geometry.flag(CRAMFS_FLAG_WRONG_SIGNATURE) {
            report.note("superblock", "another signature than \"Compressed ROMFS\"");
        }
        if super_block.future != 0 {
            report.note("superblock", format_args!("reserved word {:#x}, 0 allowed", super_block.future));
        }
        if geometry.is_openrg {
            report.warn("superblock", "OpenRG's block size and codec, which no mainline kernel reads");
        }
        if !geometry.is_version_2() {
            report.note("superblock", "version 1, which has no checksum");
        }
    }

    pub(super) fn check_sum(&self, report: &mut Report<'_>) -> Result<()> {
        if let Some((found, wanted)) = self.wrong_sum()? {
            report.error("checksum", format_args!("{found:08x}, but the superblock says {wanted:08x}"));
        }
        Ok(())
    }

    /// The checksum of the image and that of its superblock, where they differ.
    pub(crate) fn wrong_sum(&self) -> Result<Option<(u32, u32)>> {
        let geometry = &self.geometry;
        if !geometry.is_version_2() {
            return Ok(None);
        }
        let found = sum_of(geometry.super_block_at, geometry.end, &mut |at, part| {
            self.image.read_exact_at(at, part)
        })?;
        let wanted = geometry.super_block.crc;
        Ok((found != wanted).then_some((found, wanted)))
    }

    pub(super) fn check_space(&self, report: &mut Report<'_>) {
        // What keeps the map from being drawn has been told by the check of the tree.
        let Ok(owners) = self.space_owners() else { return };
        let unused =
            owners.iter().filter(|owner| owner.owner == "unused" && owner.offset < self.geometry.end);
        let (count, len) = unused.fold((0, 0), |(count, len), owner| (count + 1, len + owner.len));
        if count > 0 {
            report.note("image", format_args!("{len} bytes in {count} places that nothing refers to"));
        }
    }

    pub(super) fn check_padding(&self, report: &mut Report<'_>) -> Result<()> {
        let mut at = self.geometry.end;
        let end = self.geometry.file_len.min(at.saturating_add(BEHIND_LEN_MAX));
        let mut part = vec![0; usize_of(PART_LEN)];
        while at < end {
            part.truncate(usize_of(end - at));
            self.image.read_exact_at(at, &mut part)?;
            if let Some(found) = part.iter().position(|byte| *byte != 0) {
                let at = at + found as u64;
                report.note("padding", format_args!("data behind the image's end, first at {at:#x}"));
                return Ok(());
            }
            at += part.len() as u64;
        }
        Ok(())
    }
}

/// The checksum of an image whose superblock is at `start`: of all from there to `end`, its own
/// word being 0.
pub(crate) fn sum_of(
    start: u64,
    end: u64,
    read: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
) -> Result<u32> {
    let mut sum = crc32fast::Hasher::new();
    let mut part = vec![0; usize_of(PART_LEN)];
    let mut at = start;
    while at < end {
        part.truncate(usize_of(end - at));
        read(at, &mut part)?;
        if at == start {
            part.iter_mut().skip(usize_of(CRC_AT)).take(4).for_each(|byte| *byte = 0);
        }
        sum.update(&part);
        at += part.len() as u64;
    }
    Ok(sum.finalize())
}

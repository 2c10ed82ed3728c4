//! Checks of the image as a whole: superblock fields, checksum, unused space, padding.

use crate::disk::*;
use crate::volume::CramfsVolume;
use packfs_core::{Result, len_of, parts_of, usize_of};
use packfs_format::Space;
use packfs_format::check::{Report, check_behind, check_unused};

const PART_LEN: u64 = 1 << 16;

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

    /// Returns the stored and the computed checksum of the image if they differ.
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
        // The check of the tree reports unreadable structures.
        let Ok(owners) = self.space() else { return };
        check_unused(owners.iter().filter(|owner| owner.offset < self.geometry.end), report);
    }

    pub(super) fn check_padding(&self, report: &mut Report<'_>) -> Result<()> {
        check_behind(&*self.image, self.geometry.end..self.geometry.file_len, report).map(drop)
    }
}

/// Returns the checksum of an image whose superblock is at `start`: of everything from there to
/// `end`, with zeros in its own field.
pub(crate) fn sum_of(
    start: u64,
    end: u64,
    read: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
) -> Result<u32> {
    let mut sum = crc32fast::Hasher::new();
    let mut bytes = vec![0; usize_of(PART_LEN)];
    for part in parts_of(start..end, PART_LEN) {
        bytes.truncate(usize_of(len_of(&part)));
        read(part.start, &mut bytes)?;
        if part.start == start {
            bytes.iter_mut().skip(usize_of(CRC_AT)).take(4).for_each(|byte| *byte = 0);
        }
        sum.update(&bytes);
    }
    Ok(sum.finalize())
}

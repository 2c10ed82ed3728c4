//! Checks of the image as a whole: ignored superblock fields, unused space, padding.

use crate::legacy::disk::*;
use crate::legacy::volume::LegacyVolume;
use packfs_core::Result;
use packfs_format::Space;
use packfs_format::check::{Report, check_behind, check_unused};

impl LegacyVolume {
    pub(super) fn check_layout(&self, report: &mut Report<'_>) {
        let geometry = &self.geometry;
        let super_block = &geometry.super_block;
        if u32::from(super_block.block_log) != geometry.layout.block_len.ilog2() {
            let (log, len) = (super_block.block_log, geometry.layout.block_len);
            report.error("superblock", format_args!("block log {log} does not go with block size {len}"));
        }
        if geometry.flag(SQUASHFS_EXPORT) != geometry.layout.export.is_some() {
            let words = if geometry.layout.export.is_some() {
                "none in its flags but has"
            } else {
                "in its flags but lacks"
            };
            report.note("superblock", format_args!("the image has {words} an export table"));
        }
        if geometry.flag(SQUASHFS_NO_FRAG) && geometry.layout.fragments.is_some() {
            report.note("superblock", "flag no-fragments on an image with fragments");
        }
        let end = geometry.uids.end().max(geometry.gids.end());
        if end != geometry.bytes_used {
            let used = geometry.bytes_used;
            report
                .note("superblock", format_args!("the image ends at {used:#x}, its last table at {end:#x}"));
        }
    }

    pub(super) fn check_space(&self, report: &mut Report<'_>) -> Result<()> {
        // The check of the tree reports unreadable structures.
        let Ok(owners) = self.space() else { return Ok(()) };
        check_unused(&owners, report);
        Ok(())
    }

    pub(super) fn check_padding(&self, report: &mut Report<'_>) -> Result<()> {
        let behind = self.geometry.bytes_used..self.geometry.image_len;
        check_behind(self.metadata.image(), behind, report).map(drop)
    }
}

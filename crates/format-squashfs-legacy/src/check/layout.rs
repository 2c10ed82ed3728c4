//! What is checked of an image as a whole: figures of the superblock that readers pass over, unused space, padding.

use crate::disk::*;
use crate::volume::LegacyVolume;
use packfs_core::Result;
use packfs_core::check::Report;

/// Most of the space behind an image that is looked at.
const PADDING_LEN_MAX: u64 = 1 << 20;

impl LegacyVolume {
    pub(super) fn check_layout(&self, report: &mut Report<'_>) {
        let geometry = &self.geometry;
        let super_block = &geometry.super_block;
        if u32::from(super_block.block_log) != geometry.block_len.ilog2() {
            let (log, len) = (super_block.block_log, geometry.block_len);
            report.error("superblock", format_args!("block log {log} does not go with block size {len}"));
        }
        if geometry.flag(SQUASHFS_EXPORT) != geometry.export.is_some() {
            let words = if geometry.export.is_some() {
                "none in its flags but has"
            } else {
                "in its flags but lacks"
            };
            report.note("superblock", format_args!("the image has {words} an export table"));
        }
        if geometry.flag(SQUASHFS_NO_FRAG) && geometry.fragments.is_some() {
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
        // What keeps the map from being drawn has been told by the check of the tree.
        let Ok(owners) = self.space_owners() else { return Ok(()) };
        let unused = owners.iter().filter(|owner| owner.owner == "unused");
        let (count, len) = unused.fold((0, 0), |(count, len), owner| (count + 1, len + owner.len));
        if count > 0 {
            report.note("image", format_args!("{len} bytes in {count} places that nothing refers to"));
        }
        Ok(())
    }

    pub(super) fn check_padding(&self, report: &mut Report<'_>) -> Result<()> {
        let geometry = &self.geometry;
        let mut at = geometry.bytes_used;
        let end = geometry.image_len.min(at.saturating_add(PADDING_LEN_MAX));
        let mut buf = vec![0; 1 << 16];
        while at < end {
            let part = &mut buf[..(end - at).min(1 << 16) as usize];
            self.metadata.image().read_exact_at(at, part)?;
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

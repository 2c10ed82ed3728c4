//! What is checked of an image as a whole: where tables stand, codec options, flags, unused space, padding.

use crate::disk::*;
use crate::volume::SquashfsVolume;
use packfs_core::Result;
use packfs_core::check::Report;
use packfs_core::codec::Algorithm;
use packfs_squashfs_metadata::check::{check_behind, check_unused};
use packfs_squashfs_metadata::{PADDING_UNIT, SQUASHFS_METADATA_SIZE, Table};

const REFUSED_BY_LINUX: &str = "Linux 5.12 and later refuse to mount it";
/// Longest distance between the starts of two metadata blocks of a table.
const BLOCK_DISTANCE_MAX: u64 = (SQUASHFS_METADATA_SIZE + METADATA_HEADER_LEN) as u64;

impl SquashfsVolume {
    /// Kernels want the lookup tables to touch each other, from the image's end towards its start.
    pub(super) fn check_layout(&self, report: &mut Report<'_>) -> Result<()> {
        let geometry = &self.geometry;
        let mut limit = geometry.bytes_used;
        if let Some(xattrs) = &geometry.xattrs {
            check_table(&xattrs.sets, limit, report);
            if xattrs.sets.positions.last().is_some_and(|last| *last >= xattrs.head) {
                report.error("xattr id table", "a block starts inside the table's head");
            }
            limit = xattrs.pairs.start;
        }
        check_table(&geometry.ids, limit, report);
        if let Some(export) = &geometry.layout.export {
            check_table(export, geometry.ids.start(), report);
        }
        let flags = [
            (SQUASHFS_EXPORT, geometry.layout.export.is_some(), "export table"),
            (SQUASHFS_COMP_OPT, geometry.options.is_some(), "codec options"),
        ];
        for (bit, there, what) in flags {
            if geometry.flag(bit) != there {
                let words =
                    if there { "has none in its flags but has" } else { "has in its flags but lacks" };
                report.note("superblock", format_args!("the image {words} {what}"));
            }
        }
        if geometry.flag(SQUASHFS_NO_XATTR) && geometry.xattrs.is_some() {
            report.note("superblock", "flag no-xattrs on an image with extended attributes");
        }
        if geometry.flag(SQUASHFS_NO_FRAG) && geometry.layout.fragments.is_some() {
            report.note("superblock", "flag no-fragments on an image with fragments");
        }
        if geometry.flag(SQUASHFS_CHECK) {
            report.note("superblock", "flag check, which means nothing in version 4.0");
        }
        Ok(())
    }

    pub(super) fn check_codec(&self, report: &mut Report<'_>) -> Result<()> {
        if let Some(fault) = self.codec_words()?.fault {
            report.warn("codec options", fault);
        }
        match self.geometry.layout.algorithm {
            Algorithm::Lz4 if self.geometry.options.is_none() => {
                report.warn("codec options", "missing, and kernels do not mount an lz4 image without them");
            }
            Algorithm::LzmaAlone | Algorithm::LzmaProps => {
                report.warn("superblock", "codec lzma, which no mainline kernel reads");
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn check_space(&self, report: &mut Report<'_>) -> Result<()> {
        // What keeps the map from being drawn has been told by the check of the tree.
        let Ok(owners) = self.space_owners() else { return Ok(()) };
        check_unused(&owners, report);
        Ok(())
    }

    pub(super) fn check_padding(&self, report: &mut Report<'_>) -> Result<()> {
        let geometry = &self.geometry;
        let mut behind = geometry.bytes_used..geometry.image_len;
        if geometry.super_block_at >= geometry.bytes_used {
            behind.end = behind.end.min(geometry.super_block_at);
        }
        if !check_behind(self.metadata.image(), behind, report)? {
            return Ok(());
        }
        if geometry.super_block_at == 0 && !geometry.image_len.is_multiple_of(PADDING_UNIT) {
            report.note(
                "padding",
                format_args!(
                    "the file is {} bytes long, no multiple of 4096; it may not mount through a loop device",
                    geometry.image_len
                ),
            );
        }
        Ok(())
    }
}

fn check_table(table: &Table, limit: u64, report: &mut Report<'_>) {
    if table.list_end() != limit {
        let (end, name) = (table.list_end(), table.kind.name);
        report.warn(name, format_args!("ends at {end:#x}, not at {limit:#x}; {REFUSED_BY_LINUX}"));
    }
    let next = table.positions.iter().skip(1).chain([&table.list_start]);
    if table.positions.iter().zip(next).any(|(at, next)| next - at > BLOCK_DISTANCE_MAX) {
        report.warn(table.kind.name, format_args!("its blocks lie apart; {REFUSED_BY_LINUX}"));
    }
}

//! Checks of the image as a whole: order of tables, codec options, flags, unused space, and
//! padding.

use crate::v4::disk::*;
use crate::v4::volume::SquashfsVolume;
use crate::{PADDING_UNIT, SQUASHFS_METADATA_SIZE, Table};
use packfs_codec::Algorithm;
use packfs_core::Result;
use packfs_format::check::{Report, check_behind, check_unused};
use packfs_format::{Space, units::*};

const REFUSED_BY_LINUX: &str = "Linux 5.12 and later refuse to mount it";
/// Longest distance between the starts of two metadata blocks of a table.
const BLOCK_DISTANCE_MAX: u64 = (SQUASHFS_METADATA_SIZE + METADATA_HEADER_LEN) as u64;

impl SquashfsVolume {
    /// Returns faults for which kernels refuse to mount the image: structure and text.
    ///
    /// Kernels require adjacent lookup tables, checked from the end of the image towards its start,
    /// and options of lz4.
    pub(crate) fn refusals(&self) -> Result<Vec<(&'static str, String)>> {
        let geometry = &self.geometry;
        let mut found = Vec::new();
        let mut limit = geometry.bytes_used;
        if let Some(xattrs) = &geometry.xattrs {
            table_refusals(&xattrs.sets, limit, &mut found);
            limit = xattrs.pairs.start;
        }
        table_refusals(&geometry.ids, limit, &mut found);
        if let Some(export) = &geometry.layout.export {
            table_refusals(export, geometry.ids.start(), &mut found);
        }
        if geometry.layout.algorithm == Algorithm::Lz4 {
            let missing = geometry
                .options
                .is_none()
                .then(|| "missing, and kernels do not mount an lz4 image without them".to_owned());
            let fault = missing.or(self.codec_words()?.fault);
            found.extend(fault.map(|fault| ("codec options", fault)));
        }
        Ok(found)
    }

    pub(super) fn check_layout(&self, report: &mut Report<'_>) -> Result<()> {
        let geometry = &self.geometry;
        for (name, words) in self.refusals()? {
            report.error(name, words);
        }
        if geometry
            .xattrs
            .as_ref()
            .is_some_and(|xattrs| xattrs.sets.positions.last().is_some_and(|last| *last >= xattrs.head))
        {
            report.error("xattr id table", "a block starts inside the table's head");
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
        let algorithm = self.geometry.layout.algorithm;
        // Those of lz4 are among the refusals.
        if let Some(fault) = self.codec_words()?.fault.filter(|_| algorithm != Algorithm::Lz4) {
            report.warn("codec options", fault);
        }
        if matches!(algorithm, Algorithm::LzmaAlone | Algorithm::LzmaProps) {
            report.warn("superblock", "codec lzma, which no mainline kernel reads");
        }
        Ok(())
    }

    pub(super) fn check_space(&self, report: &mut Report<'_>) -> Result<()> {
        // The check of the tree reports unreadable structures.
        let Ok(owners) = self.space() else { return Ok(()) };
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

fn table_refusals(table: &Table, limit: u64, found: &mut Vec<(&'static str, String)>) {
    let name = table.kind.name;
    if table.list_end() != limit {
        let end = table.list_end();
        found.push((name, format!("ends at {end:#x}, not at {limit:#x}; {REFUSED_BY_LINUX}")));
    }
    let next = table.positions.iter().skip(1).chain([&table.list_start]);
    if table.positions.iter().zip(next).any(|(at, next)| next.minus(*at) > BLOCK_DISTANCE_MAX) {
        found.push((name, format!("its blocks are not adjacent; {REFUSED_BY_LINUX}")));
    }
}

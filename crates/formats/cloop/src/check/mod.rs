//! Checks every structure of a file and reports all faults, not only the first. Blocks are not
//! decoded.

use crate::open::Version;
use crate::volume::CloopVolume;
use packfs_core::Result;
use packfs_format::Finding;
use packfs_format::check::{Report, Tally, check_unused};

/// Limit of the buffers of Linux's modules.
const BLOCK_LEN_USUAL: u32 = 128 << 10;
/// Limit of the bytes without an owner that are searched for data.
const DATA_LOOKED_AT: u64 = 64 << 10;

impl CloopVolume {
    pub(crate) fn check_all(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new("cloop", found);
        self.check_geometry(&mut report)?;
        let is_sound = self.check_blocks(&mut report)?;
        if is_sound {
            check_unused(&self.space_owners()?, &mut report);
        }
        Ok(())
    }

    fn check_geometry(&self, report: &mut Report<'_>) -> Result<()> {
        let geometry = &self.geometry;
        if geometry.block_len > BLOCK_LEN_USUAL {
            let len = geometry.block_len;
            report.note("head", format_args!("block size {len}, and modules of Linux take 131072 at most"));
        }
        if geometry.block_count == 0 {
            if self.has_data()? {
                report.error("head", "no blocks, but data after them: the disk is lost")
            } else {
                report.note("head", "no blocks: the disk is empty")
            }
        }
        if !matches!(geometry.version, Version::V2_0 | Version::V4Header | Version::V4Footer) {
            let version = geometry.version.words();
            report.note(
                "head",
                format_args!("version {version}, and current modules of Linux read 2.0 and 4.0"),
            );
        }
        Ok(())
    }

    /// True if bytes without an owner are not zero.
    fn has_data(&self) -> Result<bool> {
        for unused in self.space_owners()?.iter().filter(|owner| owner.owner == "unused") {
            let mut start = vec![0; unused.len.min(DATA_LOOKED_AT) as usize];
            self.image.read_exact_at(unused.offset, &mut start)?;
            if start.iter().any(|&byte| byte != 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Checks each row of the index; true if all are readable.
    fn check_blocks(&self, report: &mut Report<'_>) -> Result<bool> {
        let geometry = &self.geometry;
        let is_four = matches!(geometry.version, Version::V4Header | Version::V4Footer);
        let mut stored = Tally::default();
        let mut is_sound = true;
        self.index.each(&*self.image, geometry, 0..geometry.block_count, &mut |block, row| {
            match report.refused("index", row)? {
                None => is_sound = false,
                Some(row) => {
                    if is_four && row.algorithm.is_none() {
                        stored.add(|| format!("{block}"));
                    }
                    if is_four && row.start == 0 {
                        report.warn("index", "block 0 starts at 0, which modules of Linux take for a fault");
                    }
                }
            }
            Ok(!report.is_full())
        })?;
        stored.warn(
            report,
            "index",
            "blocks are stored uncompressed, which the 4.3 module of Linux cannot read",
        );
        Ok(is_sound)
    }
}

//! Checks every structure of an image and reports all reachable faults, not only the first.
//!
//! Owns the order of the checks. File data is not decoded. Invariant: ends for every image, in time
//! and memory bounded by the contents of the image.

mod layout;
mod tree;
mod xattrs;

use crate::check::{check_ids, check_tables, check_tree};
use crate::v4::disk::{SQUASHFS_NOD, SQUASHFS_NOF};
use crate::v4::volume::SquashfsVolume;
use packfs_core::Result;
use packfs_format::Finding;
use packfs_format::check::Report;
use tree::Rules;

impl packfs_format::Check for SquashfsVolume {
    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new("squashfs", found);
        self.check_layout(&mut report)?;
        self.check_codec(&mut report)?;
        let mut rules = Rules::new(self);
        let mut seen = check_tree(self, &mut rules, &mut report)?;
        check_tables(self, &mut seen, self.geometry.flag(SQUASHFS_NOF), &mut report)?;
        let is_used = |index| seen.uids.contains(&index) || seen.gids.contains(&index);
        check_ids("id table", &self.ids, &seen, is_used, &mut report);
        self.check_xattrs(&rules.xattrs, seen.whole, &mut report)?;
        if self.geometry.flag(SQUASHFS_NOD) && seen.compressed_data {
            report.note("superblock", "flag uncompressed-data on an image with compressed data");
        }
        self.check_space(&mut report)?;
        self.check_padding(&mut report)
    }
}

//! Checks of the tree for versions before 4.0.

use crate::check::TreeRules;
use crate::legacy::disk::Version;
use packfs_format::check::{EntryPath, Report, Tally};

pub(super) struct Rules {
    version: Version,
    /// Files with holes in a version without them.
    early_holes: Tally,
}

impl Rules {
    pub(super) fn new(version: Version) -> Self {
        Rules { version, early_holes: Tally::default() }
    }
}

impl TreeRules for Rules {
    fn holes(&mut self, path: &EntryPath<'_>, _holes: u64) {
        if self.version != Version::V3_1 {
            self.early_holes.add(|| format!("\"{path}\""));
        }
    }

    fn finish(&mut self, report: &mut Report<'_>) {
        self.early_holes.warn(report, "superblock", "files with holes, which came with version 3.1");
    }
}

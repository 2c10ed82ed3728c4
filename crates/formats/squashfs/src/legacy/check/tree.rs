//! Checks of the tree that generations before 4.0 add.

use crate::check::TreeRules;
use crate::legacy::disk::Version;
use packfs_format::check::{EntryPath, Report, Tally};

/// Counts taken during the walk.
pub(super) struct Rules {
    version: Version,
    /// Files with holes in a version that has none.
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
        if let Some(text) = self.early_holes.one_line("files with holes, which came with version 3.1") {
            report.warn("superblock", text);
        }
    }
}

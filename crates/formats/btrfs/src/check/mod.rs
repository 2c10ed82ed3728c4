//! Check of every structure: all blocks of all trees in all of their copies, positions of chunks
//! and extents, and the hierarchy of the opened subvolume.

mod blocks;
mod places;
mod walk;

use crate::fs::Fs;
use crate::volume::BtrfsVolume;
use packfs_core::{ErrorKind, Result};
use packfs_format::check::Report;
use packfs_format::{Check, Finding};
use std::fmt::Display;

impl Check for BtrfsVolume {
    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new(crate::INFO.name, found);
        self.fs.fault.iter().for_each(|fault| report.error("image", fault));
        self.fs.warnings.iter().for_each(|text| report.warn("image", text));
        blocks::check(&self.fs, &mut report)?;
        places::check(&self.fs, &mut report)?;
        walk::check(self, &mut report)
    }
}

/// Turns corruption, or a device that is not given, into a finding.
fn taken<T>(report: &mut Report<'_>, place: impl Display, result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::Failed => {
            report.warn(place, error);
            Ok(None)
        }
        result => report.refused(place, result),
    }
}

fn tree_name(id: u64) -> String {
    format!("tree {}", id.cast_signed())
}

/// Returns the trees that the tree of trees lists, and reports its faults.
fn roots(fs: &Fs, report: &mut Report<'_>) -> Result<Vec<crate::fs::Root>> {
    let mut roots = Vec::new();
    for item in fs.roots.all(&fs.store) {
        let root = item.and_then(|item| match item.key.kind {
            crate::disk::kind::ROOT_ITEM => crate::fs::Root::read(&item).map(Some),
            _ => Ok(None),
        });
        roots.extend(taken(report, "tree of trees", root)?.flatten());
        if report.is_full() {
            break;
        }
    }
    Ok(roots)
}

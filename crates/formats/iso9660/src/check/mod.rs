//! Checks every structure of an image and reports all reachable faults, not only the first.
//!
//! Owns the order of the checks. File data is not decoded. Invariant: ends for every image, in time
//! and memory bounded by the contents of the image.

mod layout;
mod path_tables;
mod tree;

use crate::volume::Iso9660Volume;
use packfs_core::Result;
use packfs_format::check::Report;
use packfs_format::{Check, Finding};

impl Check for Iso9660Volume {
    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new("iso9660", found);
        self.check_descriptors(&mut report);
        self.check_boot(&mut report)?;
        let data = tree::check(self, &mut report)?;
        self.check_overlaps(data, &mut report);
        path_tables::check(self, &mut report)
    }
}

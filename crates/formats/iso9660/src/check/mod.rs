//! Checks every structure of an image and names all faults it can reach, not only the first.
//!
//! Owns the order of the checks. File data is not decoded here. Invariant: ends for every
//! image, in time and memory bounded by what the image really holds.

mod layout;
mod path_tables;
mod tree;

use crate::volume::Iso9660Volume;
use packfs_core::Result;
use packfs_format::Finding;
use packfs_format::check::Report;

impl Iso9660Volume {
    /// See [`packfs_format::Volume::check`].
    pub(crate) fn check_all(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new("iso9660", found);
        self.check_descriptors(&mut report);
        self.check_boot(&mut report)?;
        let data = tree::check(self, &mut report)?;
        self.check_overlaps(data, &mut report);
        path_tables::check(self, &mut report)
    }
}

//! Checks every structure of an image and names all faults it can reach, not only the first.
//!
//! Owns the order of the checks. File data is not decoded here. Invariant: ends for every
//! image, in time and memory bounded by what the image really holds.

mod layout;
mod tree;

pub(crate) use layout::sum_of;

use crate::volume::CramfsVolume;
use packfs_core::Result;
use packfs_format::Finding;
use packfs_format::check::Report;

impl CramfsVolume {
    /// See [`packfs_format::Volume::check`].
    pub(crate) fn check_all(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new("cramfs", found);
        self.check_super_block(&mut report);
        self.check_sum(&mut report)?;
        tree::check(self, &mut report)?;
        self.check_space(&mut report);
        self.check_padding(&mut report)
    }
}

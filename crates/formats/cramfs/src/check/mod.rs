//! Checks every structure of an image and reports all reachable faults, not only the first.
//!
//! Owns the order of the checks. File data is not decoded. Invariant: ends for every image, in time
//! and memory bounded by the contents of the image.

mod layout;
mod tree;

pub(crate) use layout::sum_of;

use crate::volume::CramfsVolume;
use packfs_core::Result;
use packfs_format::check::Report;
use packfs_format::{Check, Finding};

impl Check for CramfsVolume {
    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new("cramfs", found);
        self.check_super_block(&mut report);
        self.check_sum(&mut report)?;
        tree::check(self, &mut report)?;
        self.check_space(&mut report);
        self.check_padding(&mut report)
    }
}

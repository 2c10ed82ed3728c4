//! Checks every structure of an image and reports all reachable faults, not only the first.
//!
//! Owns the order of the checks. File data is not decoded. Invariant: ends for every image, in time
//! and memory bounded by the contents of the image.

mod layout;
mod tree;

use crate::reader::Reader;
use packfs_core::Result;
use packfs_format::Finding;
use packfs_format::check::Report;

impl Reader {
    pub(crate) fn check_all(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new("erofs", found);
        self.check_super_block(&mut report)?;
        let seen = tree::check(self, &mut report)?;
        self.check_features(&seen, &mut report);
        self.check_space(seen, &mut report)
    }
}

//! Checks every structure of an image and names all faults it can reach, not only the first.
//!
//! Owns the order of the checks. File data is not decoded here. Invariant: ends for every
//! image, in time and memory bounded by what the image really holds.

mod layout;
mod tables;
mod tree;

use crate::volume::LegacyVolume;
use packfs_core::check::Report;
use packfs_core::{Finding, Result};

impl LegacyVolume {
    /// See [`packfs_core::Volume::check`].
    pub(crate) fn check_all(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new("squashfs-legacy", found);
        self.check_layout(&mut report);
        let seen = tree::check(self, &mut report)?;
        tables::check(self, &seen, &mut report)?;
        self.check_space(&mut report)?;
        self.check_padding(&mut report)
    }
}

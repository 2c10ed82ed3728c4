//! Walks every structure of an image and names its faults.

use crate::volume::SquashfsVolume;
use packfs_core::{Finding, Result, Severity};

impl SquashfsVolume {
    /// See [`packfs_core::Volume::check`].
    pub(crate) fn check_all(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let walked = self.each_inode(|_, raw| {
            self.plain_inode(raw)?;
            self.data_range(raw)?;
            if raw.xattr != crate::disk::SQUASHFS_INVALID_XATTR {
                self.xattr_set(raw.xattr, raw.place)?;
            }
            Ok(())
        });
        if let Err(error) = walked {
            found(Finding { severity: Severity::Error, place: "image".into(), fault: error.to_string() });
        }
        Ok(())
    }
}

//! Checks of values common to members of every kind of archive.

use super::input::Input;
use packfs_core::{DeviceNumber, ImagePath, NodeKind, Result};

/// Longest target of a symbolic link in SquashFS and most systems.
pub(crate) const TARGET_LEN_MAX: usize = 65_535;

impl Input<'_> {
    pub(crate) fn path(&self, start: u64, path: &[u8]) -> Result<ImagePath> {
        ImagePath::parse(path).map_err(|error| self.fault(start, &error.to_string()))
    }

    pub(crate) fn symlink(&self, start: u64, target: Vec<u8>) -> Result<NodeKind> {
        if target.is_empty() || target.len() > TARGET_LEN_MAX {
            let fault = format!("target of {} bytes: 1 to {TARGET_LEN_MAX} allowed", target.len());
            return Err(self.fault(start, &fault));
        }
        Ok(NodeKind::Symlink(target.into()))
    }

    /// Linux knows 12 and 20 bits.
    pub(crate) fn device(&self, start: u64, major: u64, minor: u64) -> Result<DeviceNumber> {
        let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let number = DeviceNumber { major: narrow(major), minor: narrow(minor) };
        if DeviceNumber::decode(number.encode()) != number {
            let fault = format!("device number {major}, {minor}: at most 4095, 1048575 allowed");
            return Err(self.fault(start, &fault));
        }
        Ok(number)
    }
}

//! The filesystem that changes are applied to: an overlay of sectors.

use crate::corruption::READ_WITHOUT;
use crate::super_block::{SECTOR, SuperBlock};
use packfs_core::{Error, Image, OverlayImage, Result, usize_of};
use packfs_format::units::*;

/// Limits of the memory of changed sectors.
const CHANGED_MIN: u64 = 64 << 20;
const CHANGED_MAX: u64 = 2 << 30;
const CHANGED_PER_BYTE: u64 = 8;

pub(super) struct Target<'a> {
    pub(super) super_block: &'a SuperBlock,
    pub(super) overlay: OverlayImage,
    sectors_max: u64,
}

impl<'a> Target<'a> {
    /// `log_len` bounds the number of changed sectors.
    pub(super) fn new(super_block: &'a SuperBlock, overlay: OverlayImage, log_len: u64) -> Self {
        let bytes = log_len.times(CHANGED_PER_BYTE).clamp(CHANGED_MIN, CHANGED_MAX);
        Target { super_block, overlay, sectors_max: bytes / SECTOR }
    }

    /// Reads bytes; `None` if they exceed the image.
    pub(super) fn read(&self, at: u64, len: usize) -> Result<Option<Vec<u8>>> {
        let is_inside = at.checked_add(len as u64).is_some_and(|end| end <= self.overlay.len());
        if !is_inside {
            return Ok(None);
        }
        let mut bytes = vec![0; len];
        self.overlay.read_exact_at(at, &mut bytes)?;
        Ok(Some(bytes))
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let mut done = 0_usize;
        while done < bytes.len() {
            let at = at.plus(done as u64);
            let (sector, skip) = (at / SECTOR, usize_of(at % SECTOR));
            let room = usize_of(SECTOR).minus(skip);
            let len = room.min(bytes.len().minus(done));
            let mut changed = vec![0; usize_of(SECTOR)];
            if len < changed.len() {
                self.overlay.read_at(sector.times(SECTOR), &mut changed)?;
            }
            let place = changed.within_mut(skip..skip.plus(len));
            place.copy_from_slice(bytes.within(done..done.plus(len)));
            self.overlay.set_block(sector, changed.into());
            done = done.plus(len);
        }
        if self.overlay.replaced() as u64 > self.sectors_max {
            let max = self.sectors_max.times(SECTOR);
            let fault = format!("log: changes of over {max} bytes");
            Err(Error::limit("xfs image", fault).hint(READ_WITHOUT))
        } else {
            Ok(())
        }
    }
}

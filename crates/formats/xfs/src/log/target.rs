//! The filesystem that changes are applied to: an overlay of sectors.

use crate::corruption::READ_WITHOUT;
use crate::disk::part;
use crate::super_block::{SECTOR, SuperBlock};
use packfs_core::{Error, Image, OverlayImage, Result, usize_of};

/// Fewest and most bytes of changed sectors.
const CHANGED_MIN: u64 = 64 << 20;
const CHANGED_MAX: u64 = 2 << 30;
/// Bytes of changed sectors for each byte of the log.
const CHANGED_PER_BYTE: u64 = 8;

/// Image with changed sectors.
pub(super) struct Target<'a> {
    pub(super) super_block: &'a SuperBlock,
    pub(super) overlay: OverlayImage,
    /// Most sectors that may be changed.
    sectors_max: u64,
}

impl<'a> Target<'a> {
    /// Puts an overlay over the base; the log has `log_len` bytes of changes.
    pub(super) fn new(super_block: &'a SuperBlock, overlay: OverlayImage, log_len: u64) -> Self {
        let bytes = log_len.saturating_mul(CHANGED_PER_BYTE).clamp(CHANGED_MIN, CHANGED_MAX);
        Target { super_block, overlay, sectors_max: bytes / SECTOR }
    }

    /// Reads bytes; `None` if they are behind the end of the image.
    pub(super) fn read(&self, at: u64, len: usize) -> Result<Option<Vec<u8>>> {
        let is_inside = at.checked_add(len as u64).is_some_and(|end| end <= self.overlay.len());
        if !is_inside {
            return Ok(None);
        }
        let mut bytes = vec![0; len];
        self.overlay.read_exact_at(at, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// Replaces bytes within the image.
    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let mut done = 0_usize;
        while done < bytes.len() {
            let at = at.saturating_add(done as u64);
            let (sector, skip) = (at / SECTOR, usize_of(at % SECTOR));
            let room = usize_of(SECTOR).saturating_sub(skip);
            let len = room.min(bytes.len().saturating_sub(done));
            let mut changed = vec![0; usize_of(SECTOR)];
            if len < changed.len() {
                self.overlay.read_at(sector.saturating_mul(SECTOR), &mut changed)?;
            }
            let place = changed.get_mut(skip..skip.saturating_add(len)).unwrap_or_default();
            place.copy_from_slice(part(bytes, done, place.len()).unwrap_or_default());
            self.overlay.set_block(sector, changed.into());
            done = done.saturating_add(len);
        }
        match self.overlay.replaced() as u64 > self.sectors_max {
            true => {
                let max = self.sectors_max.saturating_mul(SECTOR);
                let fault = format!("log: changes of over {max} bytes");
                Err(Error::limit("xfs image", fault).hint(READ_WITHOUT))
            }
            false => Ok(()),
        }
    }
}

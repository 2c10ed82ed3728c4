//! The opened image as a [`Volume`], with the state common to all readers.

use crate::corruption::Corruption;
use crate::disk::ROOT_AT;
use crate::open::Geometry;
use packfs_codec::Decoders;
use packfs_core::{Error, Image, Result};
use packfs_format::{Extent, Facts, Health, Inode, InodeId, SortedDirs, Volume, units::*};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) struct CramfsVolume {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) geometry: Geometry,
    decoders: Mutex<Vec<Decoders>>,
    pub(crate) sorted_dirs: SortedDirs,
}

impl CramfsVolume {
    pub(crate) fn open(image: Arc<dyn Image>) -> Result<Self> {
        let geometry = Geometry::read(&*image)?;
        Ok(CramfsVolume { image, geometry, decoders: Mutex::default(), sorted_dirs: SortedDirs::default() })
    }

    /// Lends decoders of a pool.
    pub(crate) fn with_decoders<T>(&self, use_them: impl FnOnce(&mut Decoders) -> T) -> T {
        // Poisoning is harmless: decoders keep no state between blocks.
        let lock = || self.decoders.lock().unwrap_or_else(PoisonError::into_inner);
        let mut decoders = lock().pop().unwrap_or_default();
        let used = use_them(&mut decoders);
        lock().push(decoders);
        used
    }
}

impl Volume for CramfsVolume {
    fn format(&self) -> &'static packfs_format::FormatInfo {
        &crate::INFO
    }

    fn root(&self) -> InodeId {
        InodeId(self.geometry.super_block_at.plus(ROOT_AT))
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        Ok(self.raw_inode(id)?.plain())
    }

    fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        self.link_target(id)
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        self.file_extents(id, range, visit)
    }

    fn image_len(&self) -> Option<u64> {
        self.image_end()
    }

    fn inode_count_hint(&self) -> u64 {
        if self.geometry.is_version_2() { u64::from(self.geometry.super_block.files) } else { 0 }
    }

    fn facts(&self) -> Result<Facts> {
        self.image_facts()
    }

    fn health(&self) -> Option<&dyn Health> {
        Some(self)
    }
}

impl Health for CramfsVolume {
    fn whole_fault(&self, checksum: bool) -> Result<Option<Error>> {
        if !checksum {
            return Ok(None);
        }
        Ok(self.wrong_sum()?.map(|(found, wanted)| {
            let error = Error::from(Corruption::Sum { found, wanted });
            error.hint("--ignore-checksum reads it anyway")
        }))
    }
}

//! The opened image as a [`packfs_format::Volume`], with the state common to all readers.

use crate::legacy::open::Geometry;
use crate::{BlockIndex, Metadata, Records, data, dir, inode, padded_len, tables_fault};
use packfs_core::{Error, Image, Result};
use packfs_format::{Coding, DirCursor, DirEntry, Extent, Facts, Health, Inode, InodeId, Volume};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

pub(crate) struct LegacyVolume {
    pub(crate) geometry: Geometry,
    pub(crate) metadata: Metadata,
    pub(crate) block_index: BlockIndex,
    /// All users and groups, at most 256.
    pub(crate) uids: Vec<u32>,
    pub(crate) gids: Vec<u32>,
}

impl LegacyVolume {
    pub(crate) fn open(image: Arc<dyn Image>) -> Result<Self> {
        let geometry = Geometry::read(&*image)?;
        let uids = geometry.uids.read(&*image, geometry.endian())?;
        let gids = geometry.gids.read(&*image, geometry.endian())?;
        let metadata = Metadata::new(image, geometry.header_form(), geometry.layout.algorithm);
        Ok(LegacyVolume { geometry, metadata, block_index: BlockIndex::default(), uids, gids })
    }
}

crate::volume::shared_traits!(LegacyVolume);

impl Volume for LegacyVolume {
    crate::volume::shared_answers!();

    fn format(&self) -> &'static packfs_format::FormatInfo {
        &crate::legacy::INFO
    }

    fn made_at(&self) -> Option<i64> {
        Some(i64::from(self.geometry.super_block.mkfs_time))
    }

    fn facts(&self) -> Result<Facts> {
        Ok(self.image_facts())
    }

    fn health(&self) -> Option<&dyn Health> {
        Some(self)
    }
}

impl Health for LegacyVolume {
    fn whole_fault(&self, _checksum: bool) -> Result<Option<Error>> {
        tables_fault(self, &[])
    }
}

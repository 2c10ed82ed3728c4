//! The opened image: holds what all read modules share and hands their answers out as a [`Volume`].

use crate::legacy::open::Geometry;
use crate::{BlockIndex, Metadata, Records, data, dir, inode, padded_len, tables_fault};
use packfs_core::{Error, Image, Result};
use packfs_format::{
    Coding, DirCursor, DirEntry, Extent, Facts, Finding, Inode, InodeId, SpaceOwner, Volume,
};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// An opened image of Squashfs 1.0 to 3.1.
pub(crate) struct LegacyVolume {
    pub(crate) geometry: Geometry,
    pub(crate) metadata: Metadata,
    pub(crate) block_index: BlockIndex,
    /// The tables of users and groups, whole: 256 rows at most.
    pub(crate) uids: Vec<u32>,
    pub(crate) gids: Vec<u32>,
}

impl LegacyVolume {
    /// Opens an image.
    pub(crate) fn open(image: Arc<dyn Image>) -> Result<Self> {
        let geometry = Geometry::read(&*image)?;
        let uids = geometry.uids.read(&*image, geometry.endian())?;
        let gids = geometry.gids.read(&*image, geometry.endian())?;
        let metadata = Metadata::new(image, geometry.header_form(), geometry.layout.algorithm);
        Ok(LegacyVolume { geometry, metadata, block_index: BlockIndex::default(), uids, gids })
    }
}

impl Volume for LegacyVolume {
    crate::volume::shared_answers!();

    fn format(&self) -> &'static packfs_format::FormatInfo {
        &crate::legacy::INFO
    }

    fn whole_fault(&self, _checksum: bool) -> Result<Option<Error>> {
        tables_fault(self, &[])
    }

    fn made_at(&self) -> Option<i64> {
        Some(i64::from(self.geometry.super_block.mkfs_time))
    }

    fn facts(&self) -> Result<Facts> {
        Ok(self.image_facts())
    }
}

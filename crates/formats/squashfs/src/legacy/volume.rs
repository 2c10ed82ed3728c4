//! The opened image: holds what all read modules share and hands their answers out as a [`Volume`].

use crate::legacy::open::Geometry;
use crate::{BlockIndex, Metadata, Records, data, dir, inode, padded_len, tables_fault};
use packfs_core::{Error, Image, Result, Xattrs};
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
    fn format(&self) -> &'static packfs_format::FormatInfo {
        &crate::legacy::INFO
    }

    fn root(&self) -> InodeId {
        self.geometry.layout.root
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        self.plain_inode(id, &inode::raw_inode(self, id)?)
    }

    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        dir::find_entry(self, dir, name)
    }

    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        dir::each_entry(self, dir, from, visit)
    }

    fn is_sorted(&self) -> bool {
        self.shape().is_sorted
    }

    fn whole_fault(&self, _checksum: bool) -> Result<Option<Error>> {
        tables_fault(self, &[])
    }

    fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        inode::link_target(self, id)
    }

    fn xattrs(&self, _id: InodeId) -> Result<Xattrs> {
        Ok(Xattrs::new())
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        data::file_extents(self, id, range, visit)
    }

    fn image_len(&self) -> Option<u64> {
        Some(padded_len(self.geometry.bytes_used, self.geometry.image_len))
    }

    fn coding(&self) -> Option<Coding> {
        self.image_coding()
    }

    fn inode_count_hint(&self) -> u64 {
        u64::from(self.geometry.layout.inode_count)
    }

    fn made_at(&self) -> Option<i64> {
        Some(i64::from(self.geometry.super_block.mkfs_time))
    }

    fn facts(&self) -> Result<Facts> {
        Ok(self.image_facts())
    }

    fn space(&self) -> Result<Vec<SpaceOwner>> {
        self.space_owners()
    }

    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        self.check_all(found)
    }
}

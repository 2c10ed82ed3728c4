//! The opened image: holds what all read modules share and hands their answers out as a [`Volume`].

use crate::dates;
use crate::hard_links::HardLinks;
use crate::open::Geometry;
use crate::sectors::Sectors;
use packfs_core::{Image, Result, Xattrs};
use packfs_format::{DirCursor, DirEntry, Extent, Facts, Finding, Inode, InodeId, SpaceOwner, Volume};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// An opened ISO 9660 image.
pub(crate) struct Iso9660Volume {
    pub(crate) geometry: Geometry,
    pub(crate) sectors: Sectors,
    pub(crate) hard_links: HardLinks,
}

impl Iso9660Volume {
    /// Opens an image.
    pub(crate) fn open(image: Arc<dyn Image>) -> Result<Self> {
        let sectors = Sectors::new(image);
        let geometry = Geometry::read(&sectors)?;
        Ok(Iso9660Volume { geometry, sectors, hard_links: HardLinks::default() })
    }
}

impl Volume for Iso9660Volume {
    fn format(&self) -> &'static packfs_format::FormatInfo {
        &crate::INFO
    }

    fn root(&self) -> InodeId {
        InodeId(self.geometry.root_at)
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        self.plain_inode(&self.raw_inode(id)?)
    }

    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        self.find_entry(dir, name)
    }

    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        self.each_entry(dir, from, visit)
    }

    fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        self.link_target(id)
    }

    fn xattrs(&self, id: InodeId) -> Result<Xattrs> {
        self.attributes(id)
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
        Some(self.geometry.volume_end())
    }

    fn inode_count_hint(&self) -> u64 {
        0
    }

    fn made_at(&self) -> Option<i64> {
        dates::of_digits(&self.geometry.primary.descriptor.created).map(|time| time.seconds)
    }

    fn facts(&self) -> Result<Facts> {
        self.image_facts()
    }

    fn space(&self) -> Result<Vec<SpaceOwner>> {
        self.space_owners()
    }

    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        self.check_all(found)
    }
}

//! The opened image as a [`Volume`], with the state common to all readers.

use crate::dates;
use crate::hard_links::HardLinks;
use crate::open::Geometry;
use crate::sectors::Sectors;
use packfs_core::{Image, Result, Xattrs};
use packfs_format::{Extent, Facts, Inode, InodeId, Volume};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

pub(crate) struct Iso9660Volume {
    pub(crate) geometry: Geometry,
    pub(crate) sectors: Sectors,
    pub(crate) hard_links: HardLinks,
}

impl Iso9660Volume {
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
}

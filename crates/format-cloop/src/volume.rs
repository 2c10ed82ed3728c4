//! The opened file: holds what all read modules share and hands their answers out as a [`Volume`].

use crate::DISK_NAME;
use crate::index::Index;
use crate::open::Geometry;
use packfs_core::{
    ContainedFiles, DirCursor, DirEntry, Extent, Facts, Finding, Image, InnerImage, Inode, InodeId, Result,
    SpaceOwner, Volume, Xattrs,
};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// An opened cloop.
pub(crate) struct CloopVolume {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) geometry: Geometry,
    pub(crate) index: Index,
    files: ContainedFiles,
}

impl CloopVolume {
    /// Opens a file.
    pub(crate) fn open(image: Arc<dyn Image>) -> Result<Self> {
        let geometry = Geometry::read(&*image)?;
        let index = Index::open(&*image, &geometry)?;
        let mut files = ContainedFiles::new();
        files.push(DISK_NAME, geometry.disk_len);
        Ok(CloopVolume { image, geometry, index, files })
    }
}

impl Volume for CloopVolume {
    fn format_name(&self) -> &'static str {
        "cloop"
    }

    fn root(&self) -> InodeId {
        self.files.root()
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        self.files.inode(id)
    }

    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        self.files.lookup(dir, name)
    }

    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        self.files.read_dir(dir, from, visit)
    }

    fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        self.files.read_link(id)
    }

    fn xattrs(&self, id: InodeId) -> Result<Xattrs> {
        self.files.inode(id)?;
        Ok(Xattrs::new())
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        self.files.file(id)?;
        self.disk_extents(range, visit)
    }

    fn inner_images(&self) -> Result<Vec<InnerImage>> {
        Ok(self.files.inner_images())
    }

    fn image_len(&self) -> Option<u64> {
        self.used_len().ok()
    }

    fn inode_count_hint(&self) -> u64 {
        self.files.inode_count()
    }

    fn made_at(&self) -> Option<i64> {
        None
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

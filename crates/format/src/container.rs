//! Volumes of containers: one directory of files, each an image itself, and nothing that is not the
//! same for all containers but where the files' bytes are.

use crate::{
    ContainedFiles, DirCursor, DirEntry, Extent, Facts, Finding, FormatInfo, InnerImage, Inode, InodeId,
    SpaceOwner, Volume,
};
use packfs_core::{Image, Result, Xattrs};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// An opened container. Whatever is one is a [`Volume`], too.
///
/// Errors of all methods: as those of [`Volume`].
pub trait Container: Send + Sync {
    /// See [`Volume::format`].
    fn format(&self) -> &'static FormatInfo;

    /// The files in it.
    fn files(&self) -> &ContainedFiles;

    /// The extents of the file that was added so many files after the first; `range` ends where the
    /// file does, and is not empty. See [`Volume::extents`].
    fn file_extents(
        &self,
        index: usize,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()>;

    /// See [`Volume::warnings`].
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// See [`Volume::known_faults`].
    fn known_faults(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// See [`Volume::data_image`].
    fn data_image(&self) -> Option<Arc<dyn Image>> {
        None
    }

    /// See [`Volume::image_len`].
    fn image_len(&self) -> Option<u64>;

    /// See [`Volume::facts`].
    fn facts(&self) -> Result<Facts>;

    /// See [`Volume::space`].
    fn space(&self) -> Result<Vec<SpaceOwner>>;

    /// See [`Volume::check`].
    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()>;
}

impl<C: Container> Volume for C {
    fn format(&self) -> &'static FormatInfo {
        Container::format(self)
    }

    fn root(&self) -> InodeId {
        self.files().root()
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        self.files().inode(id)
    }

    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        self.files().lookup(dir, name)
    }

    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        self.files().read_dir(dir, from, visit)
    }

    fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        self.files().read_link(id)
    }

    fn xattrs(&self, id: InodeId) -> Result<Xattrs> {
        self.files().inode(id)?;
        Ok(Xattrs::new())
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let (index, len) = self.files().file(id)?;
        let range = range.start..range.end.min(len);
        if range.is_empty() { Ok(()) } else { self.file_extents(index, range, visit) }
    }

    fn warnings(&self) -> Vec<String> {
        Container::warnings(self)
    }

    fn known_faults(&self) -> Vec<Finding> {
        Container::known_faults(self)
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        Container::data_image(self)
    }

    fn inner_images(&self) -> Result<Vec<InnerImage>> {
        Ok(self.files().inner_images())
    }

    fn image_len(&self) -> Option<u64> {
        Container::image_len(self)
    }

    fn inode_count_hint(&self) -> u64 {
        self.files().inode_count()
    }

    fn facts(&self) -> Result<Facts> {
        Container::facts(self)
    }

    fn space(&self) -> Result<Vec<SpaceOwner>> {
        Container::space(self)
    }

    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        Container::check(self, found)
    }
}

//! Volumes of containers: one directory of files, each an image, which differ only in the positions
//! of the files' bytes.

use crate::{
    Check, ContainedFiles, DirCursor, DirEntry, Directories, Extent, Facts, Finding, FormatInfo, Health,
    InnerImage, Inode, InodeId, Inside, Space, SpaceOwner, Volume,
};
use packfs_core::{Image, Result, Xattrs};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// An opened container. Every container is a [`Volume`], too.
///
/// Errors of all methods: as those of [`Volume`].
pub trait Container: Send + Sync {
    /// See [`Volume::format`].
    fn format(&self) -> &'static FormatInfo;

    /// Files of the container.
    fn files(&self) -> &ContainedFiles;

    /// Calls `visit` for extents of the file with this index; `range` is within the file, and not
    /// empty. See [`Volume::extents`].
    fn file_extents(
        &self,
        index: usize,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()>;

    /// See [`Health::warnings`].
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// See [`Inside::known_faults`].
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

    /// See [`Space::space`].
    fn space(&self) -> Result<Vec<SpaceOwner>>;

    /// See [`Check::check`].
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

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        Container::data_image(self)
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

    fn health(&self) -> Option<&dyn Health> {
        Some(self)
    }

    fn inside(&self) -> Option<&dyn Inside> {
        Some(self)
    }
}

impl<C: Container> Directories for C {
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
}

impl<C: Container> Check for C {
    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        Container::check(self, found)
    }
}

impl<C: Container> Space for C {
    fn space(&self) -> Result<Vec<SpaceOwner>> {
        Container::space(self)
    }
}

impl<C: Container> Health for C {
    fn warnings(&self) -> Vec<String> {
        Container::warnings(self)
    }
}

impl<C: Container> Inside for C {
    fn inner_images(&self) -> Result<Vec<InnerImage>> {
        Ok(self.files().inner_images())
    }

    fn known_faults(&self) -> Vec<Finding> {
        Container::known_faults(self)
    }
}

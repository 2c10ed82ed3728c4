//! The opened file as a [`Container`], with the state common to all readers.

use crate::DISK_NAME;
use crate::index::Index;
use crate::open::Geometry;
use packfs_core::{Image, Result};
use packfs_format::{ContainedFiles, Container, Extent, Facts, Finding, SpaceOwner};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

pub(crate) struct CloopVolume {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) geometry: Geometry,
    pub(crate) index: Index,
    files: ContainedFiles,
}

impl CloopVolume {
    pub(crate) fn open(image: Arc<dyn Image>) -> Result<Self> {
        let geometry = Geometry::read(&*image)?;
        let index = Index::open(&*image, &geometry)?;
        let mut files = ContainedFiles::new();
        files.push(DISK_NAME, geometry.disk_len);
        Ok(CloopVolume { image, geometry, index, files })
    }
}

impl Container for CloopVolume {
    fn format(&self) -> &'static packfs_format::FormatInfo {
        &crate::INFO
    }

    fn files(&self) -> &ContainedFiles {
        &self.files
    }

    fn file_extents(
        &self,
        _index: usize,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        self.disk_extents(range, visit)
    }

    fn image_len(&self) -> Option<u64> {
        self.used_len().ok()
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

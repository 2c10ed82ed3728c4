//! The opened image as a [`Container`], with the state common to all readers.

use crate::layers::{Chain, Qcow};
use crate::{DISK_NAME, snapshots};
use packfs_core::{Image, Result};
use packfs_format::{ContainedFiles, Container, Extent, Extents, Facts, Finding, Opening, SpaceOwner};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

pub(crate) struct QcowVolume {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) top: Qcow,
    pub(crate) chain: Chain,
    /// The opened snapshot, as the caller named it.
    pub(crate) snapshot: Option<String>,
    files: ContainedFiles,
}

impl QcowVolume {
    pub(crate) fn open(image: Arc<dyn Image>, opening: Opening) -> Result<Self> {
        let mut top = Qcow::open(Arc::clone(&image))?;
        if let Some(wanted) = &opening.snapshot {
            let snapshot = snapshots::find(&*image, &top.geometry, wanted)?;
            (top.l1, top.disk_len) = (snapshot.l1, snapshot.disk_len);
        }
        let chain = Chain::open(Arc::clone(&image), &top.geometry, opening.backing)?;
        let mut files = ContainedFiles::new();
        files.push(DISK_NAME, top.disk_len);
        Ok(QcowVolume { image, top, chain, snapshot: opening.snapshot, files })
    }
}

impl Container for QcowVolume {
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
        let mut out = Extents::new(range.clone(), visit);
        let walked = self.chain.map(&self.top, range, &mut out);
        out.finish(walked.map(drop))
    }

    fn warnings(&self) -> Vec<String> {
        self.top.warnings().chain(self.chain.warnings()).collect()
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        self.chain.joined.clone().map(|joined| joined as Arc<dyn Image>)
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

//! The opened table as a [`Container`].

use crate::corruption::Corruption;
use crate::table::Table;
use packfs_core::{Error, Image, Result, len_of};
use packfs_format::{
    ContainedFiles, Container, Extent, ExtentFrom, Facts, Finding, PartitionTable, SpaceOwner, units::*,
};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

pub(crate) struct PartitionsVolume {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) table: Table,
    files: ContainedFiles,
}

impl PartitionsVolume {
    /// `wanted` is the preferred kind of table.
    pub(crate) fn open(image: Arc<dyn Image>, wanted: Option<PartitionTable>) -> Result<Self> {
        let table = crate::open::read(&*image, wanted)?;
        let mut files = ContainedFiles::new();
        for partition in &table.partitions {
            files.push(&partition.file_name(), partition.len);
        }
        Ok(PartitionsVolume { image, table, files })
    }
}

impl Container for PartitionsVolume {
    fn format(&self) -> &'static packfs_format::FormatInfo {
        &crate::INFO
    }

    fn files(&self) -> &ContainedFiles {
        &self.files
    }

    fn file_extents(
        &self,
        index: usize,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let partition = self.table.partitions.get(index);
        let partition = partition.ok_or_else(|| Error::failed(format!("no partition {index}")))?;
        let limit = self.image.len();
        if end_of(partition.start, range.end) > limit {
            let number = partition.number;
            return Err(Corruption::Beyond { number, end: partition.end(), limit }.into());
        }
        let from = ExtentFrom::Stored(partition.start.plus(range.start));
        let _ = visit(Extent { offset: range.start, len: len_of(&range), from });
        Ok(())
    }

    fn known_faults(&self) -> Vec<Finding> {
        self.table_faults()
    }

    fn image_len(&self) -> Option<u64> {
        Some(self.used_len())
    }

    fn facts(&self) -> Result<Facts> {
        Ok(self.image_facts())
    }

    fn space(&self) -> Result<Vec<SpaceOwner>> {
        Ok(self.space_owners())
    }

    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        self.check_all(found)
    }
}

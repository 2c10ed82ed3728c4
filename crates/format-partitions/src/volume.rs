//! The opened table: hands the answers of the read modules out as a [`Volume`].

use crate::corruption::Corruption;
use crate::open::Table;
use packfs_core::{
    ContainedFiles, DirCursor, DirEntry, Extent, ExtentFrom, Facts, Finding, Image, InnerImage, Inode,
    InodeId, Result, SpaceOwner, Volume, Xattrs,
};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// An opened disk.
pub(crate) struct PartitionsVolume {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) table: Table,
    files: ContainedFiles,
}

impl PartitionsVolume {
    /// Opens a disk.
    pub(crate) fn open(image: Arc<dyn Image>) -> Result<Self> {
        let table = Table::read(&*image)?;
        let mut files = ContainedFiles::new();
        for partition in &table.partitions {
            files.push(&partition.file_name(), partition.len);
        }
        Ok(PartitionsVolume { image, table, files })
    }
}

impl Volume for PartitionsVolume {
    fn format_name(&self) -> &'static str {
        "partitions"
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
        let (index, len) = self.files.file(id)?;
        let partition = &self.table.partitions[index];
        let (start, end) = (range.start, range.end.min(len));
        if start >= end {
            return Ok(());
        }
        let limit = self.image.len();
        if partition.start.saturating_add(end) > limit {
            let number = partition.number;
            return Err(Corruption::Beyond { number, end: partition.end(), limit }.into());
        }
        let from = ExtentFrom::Stored(partition.start + start);
        let _ = visit(Extent { offset: start, len: end - start, from });
        Ok(())
    }

    fn inner_images(&self) -> Result<Vec<InnerImage>> {
        Ok(self.files.inner_images())
    }

    fn image_len(&self) -> Option<u64> {
        Some(self.used_len())
    }

    fn inode_count_hint(&self) -> u64 {
        self.files.inode_count()
    }

    fn made_at(&self) -> Option<i64> {
        None
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

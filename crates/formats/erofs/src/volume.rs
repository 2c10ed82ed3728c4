//! The opened image as a [`Volume`].

use crate::kernel_reads::Reads;
use crate::reader::Reader;
use packfs_core::{Error, FileType, Image, Result, Xattrs};
use packfs_format::{
    AnyStored, Caching, Check, Coding, DirCursor, DirEntry, Directories, Extent, Facts, FileDigests, Finding,
    Health, Inode, InodeId, KernelReads, Space, SpaceOwner, Volume,
};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

pub(crate) struct ErofsVolume(Arc<Reader>);

impl ErofsVolume {
    pub(crate) fn open(image: Arc<dyn Image>, devices: Vec<Arc<dyn Image>>) -> Result<Self> {
        Ok(ErofsVolume(Arc::new(Reader::open(image, devices)?)))
    }
}

impl Volume for ErofsVolume {
    fn format(&self) -> &'static packfs_format::FormatInfo {
        &crate::INFO
    }

    fn root(&self) -> InodeId {
        InodeId(self.0.geometry.root_nid)
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        Ok(self.0.plain_inode(&self.0.raw_inode(id.0)?))
    }

    fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        self.0.link_target(id)
    }

    fn xattrs(&self, id: InodeId) -> Result<Xattrs> {
        let raw = self.0.raw_inode(id.0)?;
        let (xattrs, figures) = self.0.xattrs_of(&raw)?;
        match figures.unknown {
            0 => Ok(xattrs),
            _ => Err(raw.place.fault("xattrs with an unknown prefix")),
        }
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let raw = self.0.raw_inode(id.0)?;
        if raw.file_type != FileType::File {
            return Err(Error::failed(format!("is a {}, not a file", raw.file_type.word())));
        }
        self.0.content(&raw, range, visit)
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        let is_alone = !self.0.joined.has_devices() && self.0.metabox.is_none();
        (!is_alone).then(|| Arc::clone(&self.0) as _)
    }

    fn stored(&self) -> Option<AnyStored<'_>> {
        Some(AnyStored::Clusters(&*self.0))
    }

    fn coding(&self) -> Option<Coding> {
        self.0.image_coding()
    }

    fn packed_stream(&self) -> Option<(InodeId, u64)> {
        self.0.packed.as_ref().map(|packed| (InodeId(packed.nid), packed.size))
    }

    fn kernel_reads(&self) -> Result<Option<Box<dyn KernelReads + '_>>> {
        Ok(Some(Box::new(Reads::of(&self.0)?)))
    }

    fn image_len(&self) -> Option<u64> {
        let geometry = &self.0.geometry;
        geometry.bytes_of(geometry.blocks).filter(|len| *len <= geometry.image_len)
    }

    fn inode_count_hint(&self) -> u64 {
        self.0.geometry.super_block.inos.get()
    }

    fn made_at(&self) -> Option<i64> {
        Some(self.0.made_at())
    }

    fn facts(&self) -> Result<Facts> {
        self.0.image_facts()
    }

    fn health(&self) -> Option<&dyn Health> {
        Some(self)
    }

    fn digests(&self) -> Option<&dyn FileDigests> {
        self.0.digest_prefix().map(|_| self as _)
    }

    fn caching(&self) -> Option<&dyn Caching> {
        Some(self)
    }
}

impl Directories for ErofsVolume {
    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        self.0.find_entry(dir, name)
    }

    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        self.0.each_entry(dir, from, visit)
    }

    fn is_sorted(&self) -> bool {
        true
    }
}

impl Check for ErofsVolume {
    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        self.0.check_all(found)
    }
}

impl Space for ErofsVolume {
    fn space(&self) -> Result<Vec<SpaceOwner>> {
        self.0.space_owners()
    }
}

impl Health for ErofsVolume {
    fn fault(&self) -> Option<Error> {
        self.0.checksum_fault.map(Error::from)
    }

    fn whole_fault(&self, _checksum: bool) -> Result<Option<Error>> {
        let fault = self.0.super_block_faults().into_iter().next();
        Ok(fault.map(|fault| Error::corrupt("erofs image", format!("superblock: {fault}"))))
    }
}

impl FileDigests for ErofsVolume {
    fn recorded_digest(&self, id: InodeId) -> Result<Option<Vec<u8>>> {
        self.0.digest_of(&self.0.raw_inode(id.0)?)
    }
}

impl Caching for ErofsVolume {
    fn will_read_inodes(&self, ids: &[InodeId]) {
        self.0.announce(ids);
    }

    fn keep_at_most(&self, len_max: usize) {
        self.0.windows.keep_at_most(len_max);
        self.0.decoded_blocks.clear();
    }
}

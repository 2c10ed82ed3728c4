//! The opened image as a [`packfs_format::Volume`], with the state common to all readers.

use crate::v4::corruption::{Corruption, NO_XATTRS, UNKNOWN_XATTRS};
use crate::v4::disk::HEADER_FORM;
use crate::v4::open::Geometry;
use crate::{BlockIndex, Metadata, Records, data, dir, inode, padded_len, tables_fault};
use packfs_core::{Error, Image, Result, Xattrs};
use packfs_format::{
    AnyStored, Coding, DirCursor, DirEntry, Extent, Facts, Health, Inode, InodeId, KernelReads, Volume,
};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use zerocopy::little_endian::U32;

pub(crate) struct SquashfsVolume {
    pub(crate) geometry: Geometry,
    pub(crate) metadata: Metadata,
    pub(crate) block_index: BlockIndex,
    /// The whole id table, at most 65,535 rows.
    pub(crate) ids: Vec<u32>,
}

impl SquashfsVolume {
    pub(crate) fn open(image: Arc<dyn Image>) -> Result<Self> {
        let geometry = Geometry::read(&*image)?;
        let metadata = Metadata::new(image, HEADER_FORM, geometry.layout.algorithm);
        let mut ids = Vec::with_capacity(geometry.ids.count as usize);
        geometry.ids.each_row(&metadata, |_, id: U32| {
            ids.push(id.get());
            Ok(())
        })?;
        Ok(SquashfsVolume { geometry, metadata, block_index: BlockIndex::default(), ids })
    }
}

crate::volume::shared_traits!(SquashfsVolume);

impl Volume for SquashfsVolume {
    crate::volume::shared_answers!();

    fn format(&self) -> &'static packfs_format::FormatInfo {
        &crate::v4::INFO
    }

    fn xattrs(&self, id: InodeId) -> Result<Xattrs> {
        let raw = inode::raw_inode(self, id)?;
        if raw.xattr == crate::v4::disk::SQUASHFS_INVALID_XATTR {
            return Ok(Xattrs::new());
        }
        let (xattrs, figures) = self.xattr_set(raw.xattr, raw.place)?;
        if self.geometry.xattrs.is_some() && (figures.count == 0 || figures.unknown > 0) {
            let fault = if figures.count == 0 { NO_XATTRS } else { UNKNOWN_XATTRS };
            return Err(Corruption::XattrSet { place: raw.place, index: raw.xattr, fault }.into());
        }
        Ok(xattrs)
    }

    fn stored(&self) -> Option<AnyStored<'_>> {
        Some(AnyStored::Blocks(self))
    }

    fn kernel_reads(&self) -> Result<Option<Box<dyn KernelReads + '_>>> {
        Ok(Some(Box::new(self)))
    }

    fn made_at(&self) -> Option<i64> {
        Some(i64::from(self.geometry.super_block.mkfs_time.get()))
    }

    fn facts(&self) -> Result<Facts> {
        self.image_facts()
    }

    fn health(&self) -> Option<&dyn Health> {
        Some(self)
    }
}

impl Health for SquashfsVolume {
    fn whole_fault(&self, _checksum: bool) -> Result<Option<Error>> {
        let others: Vec<_> = self.geometry.xattrs.iter().map(|tables| &tables.sets).collect();
        if let Some(fault) = tables_fault(self, &others)? {
            return Ok(Some(fault));
        }
        let refusal = self.refusals()?.into_iter().next();
        Ok(refusal.map(|(name, words)| Error::corrupt("squashfs image", format!("{name}: {words}"))))
    }
}

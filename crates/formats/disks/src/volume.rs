//! An opened virtual disk of any format, as a [`Container`].

use crate::DISK_NAME;
use packfs_codec::BlockRef;
use packfs_core::{Error, Image, Result, len_of};
use packfs_format::check::{Report, check_unused};
use packfs_format::{
    ContainedFiles, Container, Extent, ExtentFrom, Extents, FactValue, Facts, Finding, FormatInfo,
    SpaceOwner, space_owners,
};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Place of a stretch of the disk.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Nowhere: it reads as zeros.
    Hole,
    /// In the file from here on, as it is.
    Stored(u64),
    /// From byte `start` on of a compressed block.
    Block { block: BlockRef, start: u32 },
    /// In a block that cannot be there.
    Fault(Error),
}

/// Takes stretches of a disk, in order, each with its place; returns false if no more is wanted.
pub(crate) type Visit<'a> = dyn FnMut(Range<u64>, Place) -> Result<bool> + 'a;

/// A map of a disk.
pub(crate) trait Map: Send + Sync {
    /// Returns the identity of the format.
    fn format(&self) -> &'static FormatInfo;

    /// Returns the length of the disk, in bytes.
    fn disk_len(&self) -> u64;

    /// Calls `visit` for the stretches of `range`, in order and without a gap. Ends early when it
    /// returns false.
    ///
    /// Errors: those of `visit`, `Io`; `Corrupt` for a table that cannot be read.
    fn each(&self, range: Range<u64>, visit: &mut Visit<'_>) -> Result<()>;

    /// Adds the facts that only this format has.
    fn add_facts(&self, facts: &mut Facts);

    /// Returns the ranges of the file that hold no data of the disk, and the name of each.
    fn structures(&self) -> Vec<(Range<u64>, &'static str)>;

    /// See [`packfs_format::Volume::data_image`].
    fn data_image(&self) -> Option<Arc<dyn Image>> {
        None
    }

    /// See [`packfs_format::Volume::warnings`].
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Checks what mapping the disk does not look at.
    fn check(&self, report: &mut Report<'_>) -> Result<()> {
        let _ = report;
        Ok(())
    }
}

/// An opened disk.
pub(crate) struct DiskVolume<M> {
    image: Arc<dyn Image>,
    pub(crate) map: M,
    files: ContainedFiles,
}

impl<M: Map> DiskVolume<M> {
    /// Wraps the map of the disk in an image.
    pub(crate) fn new(image: Arc<dyn Image>, map: M) -> Self {
        let mut files = ContainedFiles::new();
        files.push(DISK_NAME, map.disk_len());
        DiskVolume { image, map, files }
    }

    /// Ranges of the file that something owns, in order of their starts.
    fn claims(&self) -> Result<Vec<(Range<u64>, &'static str)>> {
        let len = self.image.len();
        let mut claims = self.map.structures();
        let mut run = 0..0;
        self.map.each(0..self.map.disk_len(), &mut |part, place| {
            let stored = match place {
                // Places of data that is made up are beyond the file.
                Place::Stored(at) if at < len => at..at.saturating_add(len_of(&part)),
                Place::Block { block, .. } => packfs_core::range_at(block.offset, block.stored_len.into()),
                Place::Stored(_) | Place::Hole | Place::Fault(_) => return Ok(true),
            };
            // Blocks mostly lie one after the other.
            if run.end == stored.start && !run.is_empty() {
                run.end = stored.end;
            } else {
                claims.push((std::mem::replace(&mut run, stored), "file data"));
            }
            Ok(true)
        })?;
        claims.push((run, "file data"));
        claims.sort_by_key(|(range, _)| range.start);
        Ok(claims)
    }
}

impl<M: Map> Container for DiskVolume<M> {
    fn format(&self) -> &'static FormatInfo {
        self.map.format()
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
        let mut extents = Extents::new(range.clone(), visit);
        self.map.each(range, &mut |part, place| {
            let from = match place {
                Place::Hole => ExtentFrom::Hole,
                Place::Stored(at) => ExtentFrom::Stored(at),
                Place::Block { block, start } => ExtentFrom::Block { block, start },
                Place::Fault(fault) => {
                    extents.finish();
                    return Err(fault);
                }
            };
            Ok(extents.push(Extent { offset: part.start, len: len_of(&part), from }).is_continue())
        })?;
        extents.finish();
        Ok(())
    }

    fn warnings(&self) -> Vec<String> {
        self.map.warnings()
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        self.map.data_image()
    }

    fn image_len(&self) -> Option<u64> {
        let ends = self.claims().ok()?.into_iter().map(|(range, _)| range.end);
        ends.max().map(|end| end.min(self.image.len()))
    }

    fn facts(&self) -> Result<Facts> {
        let mut facts = Facts::default();
        facts.push("format", "Format", FactValue::Text(self.map.format().name.into()));
        self.map.add_facts(&mut facts);
        facts.push("disk_len", "Disk length", FactValue::Bytes(self.map.disk_len()));
        facts.push("image_len", "Image length", FactValue::Bytes(self.image.len()));
        Ok(facts)
    }

    fn space(&self) -> Result<Vec<SpaceOwner>> {
        Ok(space_owners(self.claims()?, self.image.len()))
    }

    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new(self.map.format().name, found);
        self.map.check(&mut report)?;
        let mut is_sound = true;
        self.map.each(0..self.map.disk_len(), &mut |part, place| {
            if let Place::Fault(fault) = place {
                is_sound = false;
                report.refused(format_args!("disk at {:#x}", part.start), Err::<(), _>(fault))?;
            }
            Ok(!report.is_full())
        })?;
        if is_sound {
            check_unused(&self.space()?, &mut report);
        }
        Ok(())
    }
}

//! An opened virtual disk of any format, as a [`Container`].

use crate::DISK_NAME;
use crate::runs::Runs;
use packfs_codec::BlockRef;
use packfs_core::{Error, Image, Result, len_of, range_at};
use packfs_format::check::{Report, check_unused};
use packfs_format::{
    ContainedFiles, Container, Extent, ExtentFrom, Extents, FactValue, Facts, Finding, FormatInfo,
    SpaceOwner, space_owners, units::*,
};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Limit of the blocks examined for the end of an image.
const PARTS_MAX: u64 = 1 << 26;

#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Not stored: zeros.
    Hole,
    /// Stored uncompressed at this offset.
    Stored(u64),
    /// Stored in a compressed block, from its byte `start` on.
    Block { block: BlockRef, start: u32 },
    /// Invalid position.
    Fault(Error),
}

/// Arguments: a range of the disk, in order, and its position; returns false to stop.
pub(crate) type Visit<'a> = dyn FnMut(Range<u64>, Place) -> Result<bool> + 'a;

pub(crate) trait Map: Send + Sync {
    fn format(&self) -> &'static FormatInfo;

    fn disk_len(&self) -> u64;

    /// Calls `visit` for parts of `range`, in order and without gaps, until it returns false.
    ///
    /// Errors: those of `visit`, `Io`; `Corrupt` for an unreadable table.
    fn each(&self, range: Range<u64>, visit: &mut Visit<'_>) -> Result<()>;

    /// Like [`Map::each`], for whole blocks in the file itself.
    ///
    /// Errors: as [`Map::each`].
    fn each_stored(&self, range: Range<u64>, visit: &mut Visit<'_>) -> Result<()> {
        self.each(range, visit)
    }

    /// Returns the range of the file that belongs to `len` bytes stored at `at`, including the rest
    /// of the block.
    fn owned(&self, at: u64, len: u64) -> Range<u64> {
        range_at(at, len)
    }

    fn add_facts(&self, facts: &mut Facts);

    /// Returns the ranges of the file without data of the disk, with their names.
    fn structures(&self) -> Vec<(Range<u64>, &'static str)>;

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        None
    }

    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Reports faults that opening the image worked around.
    fn check_opened(&self, report: &mut Report<'_>) {
        let _ = report;
    }

    /// Checks structures that mapping the disk does not read.
    fn check(&self, report: &mut Report<'_>) -> Result<()> {
        let _ = report;
        Ok(())
    }
}

pub(crate) struct DiskVolume<M> {
    image: Arc<dyn Image>,
    pub(crate) map: M,
    files: ContainedFiles,
}

impl<M: Map> DiskVolume<M> {
    pub(crate) fn new(image: Arc<dyn Image>, map: M) -> Self {
        let mut files = ContainedFiles::new();
        files.push(DISK_NAME, map.disk_len());
        DiskVolume { image, map, files }
    }

    /// Calls `visit` with the range of the file that belongs to each part of the disk, until it
    /// returns false.
    fn each_owned(&self, visit: &mut dyn FnMut(Range<u64>) -> bool) -> Result<()> {
        let len = self.image.len();
        self.map.each_stored(0..self.map.disk_len(), &mut |part, place| {
            let owned = match place {
                // Positions of generated data are after the file.
                Place::Stored(at) if at < len => self.map.owned(at, len_of(&part)),
                Place::Block { block, .. } => self.map.owned(block.offset, block.stored_len.into()),
                Place::Stored(_) | Place::Hole | Place::Fault(_) => return Ok(true),
            };
            Ok(visit(owned.start.min(len)..owned.end.min(len)))
        })
    }

    /// Returns the runs of the file that contain the disk.
    ///
    /// Errors: `Corrupt` if there are too many overlapping ones.
    fn runs(&self) -> Result<Runs> {
        let mut runs = Runs::default();
        self.each_owned(&mut |range| runs.push(range))?;
        runs.finish();
        if runs.is_too_many() {
            let subject = format!("{} image", self.map.format().name);
            return Err(Error::corrupt(subject, "more blocks than the file has room for: many overlap"));
        }
        Ok(runs)
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
        let walked = self.map.each(range, &mut |part, place| {
            let from = match place {
                Place::Hole => ExtentFrom::Hole,
                Place::Stored(at) => ExtentFrom::Stored(at),
                Place::Block { block, start } => ExtentFrom::Block { block, start },
                Place::Fault(fault) => return Err(fault),
            };
            Ok(extents.push(Extent { offset: part.start, len: len_of(&part), from }).is_continue())
        });
        extents.finish(walked)
    }

    fn warnings(&self) -> Vec<String> {
        self.map.warnings()
    }

    fn known_faults(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut add = |finding| findings.push(finding);
        self.map.check_opened(&mut Report::new(self.map.format().name, &mut add));
        findings
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        self.map.data_image()
    }

    fn image_len(&self) -> Option<u64> {
        let structures = self.map.structures().into_iter().map(|(range, _)| range.end);
        let mut end = structures.max().unwrap_or(0);
        let mut parts = 0_u64;
        self.each_owned(&mut |range| {
            (end, parts) = (end.max(range.end), parts.plus(1));
            // The whole file is used, or the image is invalid.
            end < self.image.len() && parts < PARTS_MAX
        })
        .ok()?;
        Some(end.min(self.image.len()))
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
        let mut claims = self.map.structures();
        claims.extend(self.runs()?.ranges().map(|run| (run, "file data")));
        claims.sort_by_key(|(range, _)| range.start);
        Ok(space_owners(claims, self.image.len()))
    }

    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new(self.map.format().name, found);
        self.map.check_opened(&mut report);
        self.map.check(&mut report)?;
        let mut is_sound = true;
        self.map.each(0..self.map.disk_len(), &mut |part, place| {
            if let Place::Fault(fault) = place {
                is_sound = false;
                report.refused(format_args!("disk at {:#x}", part.start), Err::<(), _>(fault))?;
            }
            Ok(!report.is_full())
        })?;
        let Some(runs) = report.refused("disk", self.runs())? else { return Ok(()) };
        if let Some(shared) = runs.shared() {
            let Range { start, end } = shared;
            report.error("disk", format_args!("several blocks are at {start:#x} to {end:#x}"));
        }
        for (structure, name) in self.map.structures() {
            if let Some(run) = runs.over(&structure) {
                let fault = format_args!("blocks at {:#x} are over {:#x}", run.start, structure.start);
                report.error(name, fault);
            }
        }
        if is_sound {
            check_unused(&self.space()?, &mut report);
        }
        Ok(())
    }
}

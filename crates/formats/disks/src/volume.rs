//! An opened virtual disk of any format, as a [`Container`].

use crate::DISK_NAME;
use crate::runs::Runs;
use packfs_codec::BlockRef;
use packfs_core::{Error, Image, Result, len_of, range_at};
use packfs_format::check::{Report, check_unused};
use packfs_format::{
    ContainedFiles, Container, Extent, ExtentFrom, Extents, FactValue, Facts, Finding, FormatInfo,
    SpaceOwner, space_owners,
};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Most blocks that are looked at for the end of an image.
const PARTS_MAX: u64 = 1 << 26;

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

    /// Returns the bytes of the file that belong to a stretch stored at `at`, of `len` bytes: with
    /// what is around it, such as the rest of its block.
    fn owned(&self, at: u64, len: u64) -> Range<u64> {
        range_at(at, len)
    }

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

    /// Reports what opening the image met and worked around.
    fn check_opened(&self, report: &mut Report<'_>) {
        let _ = report;
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

    /// Calls `visit` with the bytes of the file that belong to each stretch of the disk; ends early
    /// when it returns false.
    fn each_owned(&self, visit: &mut dyn FnMut(Range<u64>) -> bool) -> Result<()> {
        let len = self.image.len();
        self.map.each(0..self.map.disk_len(), &mut |part, place| {
            let owned = match place {
                // Places of data that is made up are beyond the file.
                Place::Stored(at) if at < len => self.map.owned(at, len_of(&part)),
                Place::Block { block, .. } => self.map.owned(block.offset, block.stored_len.into()),
                Place::Stored(_) | Place::Hole | Place::Fault(_) => return Ok(true),
            };
            Ok(visit(owned.start.min(len)..owned.end.min(len)))
        })
    }

    /// The runs of the file that hold the disk.
    ///
    /// Errors: `Corrupt` if so many of them overlap that the others are not looked at.
    fn runs(&self) -> Result<Runs> {
        let mut runs = Runs::default();
        self.each_owned(&mut |range| runs.push(range))?;
        runs.finish();
        if runs.is_too_many() {
            let fault = "more blocks than the file has room for: many are in one place";
            return Err(Error::corrupt(format!("{} image", self.map.format().name), fault));
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
            (end, parts) = (end.max(range.end), parts.saturating_add(1));
            // The whole file is used; or it is no sound image.
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
            let (at, end) = (shared.start, shared.end);
            report.error("disk", format_args!("several blocks are at {at:#x} to {end:#x}"));
        }
        for (structure, name) in self.map.structures() {
            if let Some(run) = runs.over(&structure) {
                let at = run.start;
                report.error(name, format_args!("blocks at {at:#x} are over {:#x}", structure.start));
            }
        }
        if is_sound {
            check_unused(&self.space()?, &mut report);
        }
        Ok(())
    }
}

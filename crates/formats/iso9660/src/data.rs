//! Contents of files: extents of records converted to extents of files.
//!
//! Owns files of several extents. Invariant: every returned range is within the image. Never reads
//! data itself, except for headers and pointers of compressed files.

use crate::corruption::{Corruption, Place};
use crate::dir::Listing;
use crate::disk::{FLAG_MULTI_EXTENT, SECTOR_LEN};
use crate::inode::{RawInode, RawKind, not_a};
use crate::record::Record;
use crate::sections::Section;
use crate::volume::Iso9660Volume;
use crate::zisofs::Compressed;
use packfs_core::{Error, Result};
use packfs_format::{Extent, Extents, InodeId, units::*};
use std::ops::{ControlFlow, Range};

/// Limit of the records of one file: 64 TiB of them.
const SECTIONS_MAX: usize = 16_384;

impl Iso9660Volume {
    /// Returns the sections of all records of a file; adjacent ones are merged.
    pub(crate) fn sections(&self, first: &Record) -> Result<Vec<Section>> {
        let block_len = self.geometry.block_len;
        let mut sections: Vec<Section> = Vec::new();
        let mut push = |record: &Record| -> Result<()> {
            if record.head.unit_len != 0 || record.head.gap_len != 0 {
                let what = format!("{}: an interleaved file", record.place());
                return Err(Error::unsupported("iso9660 image", what));
            }
            let next = Section { at: record.data_at(block_len), len: record.data_len() };
            match sections.last_mut() {
                Some(last) if last.range().end == next.at => last.len = last.len.plus(next.len),
                _ => sections.push(next),
            }
            Ok(())
        };
        push(first)?;
        if !first.has(FLAG_MULTI_EXTENT) {
            return Ok(sections);
        }
        // Its other records follow; the end of the directory is unknown here.
        let mut listing = Listing::behind(self, first);
        for _ in 1..SECTIONS_MAX {
            let next = listing.next_record()?.filter(|next| next.name() == first.name());
            let Some(next) = next else {
                return Err(Corruption::LastExtent { place: first.place() }.into());
            };
            push(&next)?;
            if !next.has(FLAG_MULTI_EXTENT) {
                return Ok(sections);
            }
        }
        Err(Corruption::Extents { place: first.place(), max: SECTIONS_MAX }.into())
    }

    /// Errors: a section that exceeds the image.
    pub(crate) fn check_sections(&self, sections: &[Section]) -> Result<()> {
        let check =
            |section: &Section| self.sectors.check_range(Place::at("file data", section.at), section.len);
        sections.iter().filter(|section| section.len > 0).try_for_each(check)
    }

    pub(crate) fn file_extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let raw = self.raw_inode(id)?;
        let RawKind::File { len, ref sections } = raw.kind else { return Err(not_a("file", &raw)) };
        let range = range.start..range.end.min(len);
        if range.is_empty() {
            return Ok(());
        }
        self.check_file(&raw)?;
        self.check_sections(sections)?;
        let mut extents = Extents::new(range, visit);
        let walked = match raw.rock_ridge.zisofs {
            Some(marked) => {
                let place = raw.record.place();
                Compressed::open(&self.sectors, sections, marked, place)?.extents(&mut extents)
            }
            None => {
                let mut offset = 0_u64;
                for section in sections {
                    let end = offset.plus(section.len);
                    if extents.stored(offset..end, section.at).is_break() {
                        break;
                    }
                    offset = end;
                }
                Ok(())
            }
        };
        extents.finish(walked)
    }

    /// Refuses files whose contents are not in their extents.
    pub(crate) fn check_file(&self, raw: &RawInode) -> Result<()> {
        if raw.rock_ridge.is_sparse {
            let what = format!("{}: a sparse file (SF)", raw.record.place());
            return Err(Error::unsupported("iso9660 image", what));
        }
        Ok(())
    }
}

/// Range of a section, in whole sectors.
pub(crate) fn taken(section: &Section) -> Range<u64> {
    section.at..section.range().end.next_multiple_of(SECTOR_LEN)
}

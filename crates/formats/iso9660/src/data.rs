//! Contents of files: the extents of records turned into extents of files.
//!
//! Owns files of several extents. Invariant: every range handed out lies in the image. Never reads
//! data itself, but for the headers and pointers of compressed files.

use crate::corruption::{Corruption, Place};
use crate::dir::Listing;
use crate::disk::{FLAG_MULTI_EXTENT, SECTOR_LEN};
use crate::inode::{RawInode, RawKind, not_a};
use crate::record::Record;
use crate::sections::Section;
use crate::volume::Iso9660Volume;
use crate::zisofs::Compressed;
use packfs_core::{Error, Result};
use packfs_format::{Extent, ExtentFrom, Extents, InodeId};
use std::ops::{ControlFlow, Range};

/// Most records of one file: 64 TiB of them.
const SECTIONS_MAX: usize = 16_384;

impl Iso9660Volume {
    /// Returns the sections of a file from all of its records; adjacent sections are merged.
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
                Some(last) if last.range().end == next.at => last.len = last.len.saturating_add(next.len),
                _ => sections.push(next),
            }
            Ok(())
        };
        push(first)?;
        if !first.has(FLAG_MULTI_EXTENT) {
            return Ok(sections);
        }
        // Its other records follow it; how far its directory goes is not known here.
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

    /// Checks that all of a file lies in the image.
    pub(crate) fn check_sections(&self, sections: &[Section]) -> Result<()> {
        let check =
            |section: &Section| self.sectors.check_range(Place::at("file data", section.at), section.len);
        sections.iter().filter(|section| section.len > 0).try_for_each(check)
    }

    /// See [`packfs_format::Volume::extents`].
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
        match raw.rock_ridge.zisofs {
            Some(marked) => {
                let place = raw.record.place();
                Compressed::open(&self.sectors, sections, marked, place)?.extents(&mut extents)?;
            }
            None => {
                let mut offset = 0;
                for section in sections {
                    let from = ExtentFrom::Stored(section.at);
                    if section.len > 0 && extents.push(Extent { offset, len: section.len, from }).is_break() {
                        break;
                    }
                    offset = offset.saturating_add(section.len);
                }
            }
        }
        extents.finish();
        Ok(())
    }

    /// Refuses files whose contents are not what their records lead to.
    pub(crate) fn check_file(&self, raw: &RawInode) -> Result<()> {
        if raw.rock_ridge.is_sparse {
            let what = format!("{}: a sparse file (SF)", raw.record.place());
            return Err(Error::unsupported("iso9660 image", what));
        }
        Ok(())
    }
}

/// Returns the range that a section takes, in whole sectors.
pub(crate) fn taken(section: &Section) -> Range<u64> {
    section.at..section.range().end.next_multiple_of(SECTOR_LEN)
}

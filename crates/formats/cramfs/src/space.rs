//! Owners of an image's bytes, and its end: maps structures to ranges, for every image that can be
//! walked.

use crate::corruption::Corruption;
use crate::data::StoredAs;
use crate::disk::DIRECT_HEADER_LEN;
use crate::inode::RawInode;
use crate::volume::CramfsVolume;
use crate::walk::{Contents, has_blocks};
use packfs_core::{FileType, Result, range_at};
use packfs_format::{Space, SpaceOwner, space_owners, units::*};
use std::ops::{ControlFlow, Range};

/// Alignment of an image's length.
const PADDING_UNIT: u64 = 4096;

/// Claims on the image; of claims with the same start, the first prevails.
#[derive(Default)]
struct Claims {
    rows: Vec<(Range<u64>, &'static str)>,
}

impl Claims {
    fn add(&mut self, range: Range<u64>, owner: &'static str) {
        match self.rows.last_mut() {
            _ if range.is_empty() => {}
            Some((last, last_owner)) if *last_owner == owner && last.end == range.start => {
                last.end = range.end;
            }
            _ => self.rows.push((range, owner)),
        }
    }
}

impl CramfsVolume {
    /// See [`packfs_format::Volume::image_len`]. Version 1 does not record the length, but its
    /// structures imply it.
    pub(crate) fn image_end(&self) -> Option<u64> {
        if self.geometry.is_version_2() {
            return Some(self.geometry.end);
        }
        let claims = self.claims().ok()?;
        let used = claims.rows.iter().map(|(range, _)| range.end).max()?;
        Some(used.next_multiple_of(PADDING_UNIT).min(self.geometry.file_len))
    }

    fn claims(&self) -> Result<Claims> {
        let geometry = &self.geometry;
        let mut claims = Claims::default();
        claims.add(0..geometry.super_block_at, "boot room");
        claims.add(geometry.super_block_at..geometry.start(), "superblock");
        let mut budget = self.budget();
        let mut contents = Contents::default();
        self.each_inode(|inode| {
            if inode.file_type == FileType::Directory {
                claims.add(range_at(inode.raw.offset.into(), inode.raw.size.into()), "directories");
            } else if has_blocks(inode) && contents.is_new(inode) {
                budget.spend(inode.pointers_len(geometry), || Corruption::Overlap { place: inode.place })?;
                self.claim_blocks(inode, &mut claims)?;
            }
            Ok(())
        })?;
        Ok(claims)
    }

    fn claim_blocks(&self, inode: &RawInode, claims: &mut Claims) -> Result<()> {
        let geometry = &self.geometry;
        claims.add(inode.pointers(geometry), "block pointers");
        let mut last = 0..0;
        let _ = self.each_block(inode, 0..inode.block_count(geometry), &mut |block| {
            if block.len > 0 {
                let header_len = match (block.is_direct, block.stored_as) {
                    (true, StoredAs::Compressed(_)) => DIRECT_HEADER_LEN,
                    _ => 0,
                };
                let range = block.at.minus(header_len)..block.stored().end;
                claims.add(range.clone(), "file data");
                last = range;
            }
            ControlFlow::Continue(())
        })?;
        // The next structure is aligned to four bytes.
        let aligned = last.end.next_multiple_of(4).min(geometry.end);
        claims.add(last.end..aligned, "file data");
        Ok(())
    }
}

impl Space for CramfsVolume {
    fn space(&self) -> Result<Vec<SpaceOwner>> {
        let geometry = &self.geometry;
        let mut rows = self.claims()?.rows;
        rows.sort_by_key(|(range, _)| range.start);
        let used = rows.iter().map(|(range, _)| range.end).max().unwrap_or(0);
        let end = geometry.file_len.max(used);
        rows.push((used..end, "padding"));
        Ok(space_owners(rows, geometry.file_len))
    }
}

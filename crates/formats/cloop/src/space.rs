//! Owners of a file's bytes, and its end.

use crate::open::Version;
use crate::volume::CloopVolume;
use packfs_core::Result;
use packfs_format::{SpaceOwner, space_owners, units::*};
use std::ops::Range;

impl CloopVolume {
    /// See [`packfs_format::Space::space`].
    pub(crate) fn space_owners(&self) -> Result<Vec<SpaceOwner>> {
        let geometry = &self.geometry;
        let mut claims: Vec<(Range<u64>, &'static str)> = vec![
            (geometry.head.clone(), "header"),
            (geometry.index.clone(), "index"),
            (geometry.flags.clone(), "index"),
            (geometry.tail.clone(), "tail"),
        ];
        let mut run = 0..0;
        self.index.each(&*self.image, geometry, 0..geometry.block_count, &mut |_, row| {
            let block = row?.range();
            // Blocks are mostly contiguous.
            if run.end == block.start && !run.is_empty() {
                run.end = block.end;
            } else {
                claims.push((std::mem::replace(&mut run, block), "file data"));
            }
            Ok(true)
        })?;
        claims.push((run, "file data"));
        claims.sort_by_key(|(range, _)| range.start);
        Ok(space_owners(claims, geometry.image_len))
    }

    /// See [`packfs_format::Volume::image_len`]: the end of the last block or structure.
    pub(crate) fn used_len(&self) -> Result<u64> {
        let geometry = &self.geometry;
        let mut len = geometry.head.end.max(geometry.index.end).max(geometry.tail.end);
        if geometry.tail.is_empty() && geometry.head.start == 0 {
            // Only in versions with blocks in any order, the last one need not be at the end.
            let first = match geometry.version {
                Version::Accelerated => 0,
                _ => left(geometry.block_count, 1),
            };
            self.index.each(&*self.image, geometry, first..geometry.block_count, &mut |_, row| {
                len = len.max(row?.range().end);
                Ok(true)
            })?;
        }
        Ok(len)
    }
}

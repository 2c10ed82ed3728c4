//! Owners of an image's bytes: maps structures to ranges, for every image that can be walked.

use crate::SpaceClaims;
use crate::v4::disk::*;
use crate::v4::volume::SquashfsVolume;
use packfs_core::{Result, range_at};
use packfs_format::SpaceOwner;
use std::mem::size_of;

impl packfs_format::Space for SquashfsVolume {
    fn space(&self) -> Result<Vec<SpaceOwner>> {
        let geometry = &self.geometry;
        let super_block_len = size_of::<SuperBlock>() as u64;
        let mut claims = SpaceClaims::default();
        claims.add(0..super_block_len, "superblock");
        let at = geometry.super_block_at;
        claims.add(range_at(at, super_block_len), "superblock");
        if let Some(options) = geometry.options {
            claims.add(super_block_len..options.end(), "codec options");
        }
        claims.add_table(&geometry.ids, "id table");
        if let Some(xattrs) = &geometry.xattrs {
            // The header is between the blocks of the sets and their list.
            claims.add(xattrs.pairs.start..xattrs.sets.list_end(), "xattr table");
        }
        // The superblock of a streamed image follows the padding.
        let padding_end = if at < geometry.bytes_used { geometry.image_len } else { at };
        claims.add(geometry.bytes_used..padding_end, "padding");
        claims.owners(self, geometry.image_len)
    }
}

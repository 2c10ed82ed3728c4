//! Who owns each byte of an image.
//!
//! Owns the map from structures to ranges, for every image that can be walked.

use crate::disk::*;
use crate::volume::SquashfsVolume;
use packfs_core::{Result, SpaceOwner, space_owners};
use packfs_squashfs_metadata::{Table, walk};
use std::mem::size_of;
use std::ops::Range;

/// Claims on the image; of those that start at one byte the first wins.
#[derive(Default)]
struct Claims {
    rows: Vec<(Range<u64>, &'static str)>,
}

impl Claims {
    fn add(&mut self, range: Range<u64>, owner: &'static str) {
        if !range.is_empty() {
            self.rows.push((range, owner));
        }
    }

    /// Blocks and list of a lookup table; rows may share blocks with nothing else.
    fn add_table(&mut self, table: &Table, blocks_end: u64, owner: &'static str) {
        self.add(table.start()..blocks_end, owner);
        self.add(table.list_start..table.list_end(), owner);
    }
}

impl SquashfsVolume {
    /// See [`packfs_core::Volume::space`].
    pub(crate) fn space_owners(&self) -> Result<Vec<SpaceOwner>> {
        let geometry = &self.geometry;
        let layout = &geometry.layout;
        let super_block_len = size_of::<SuperBlock>() as u64;
        let mut claims = Claims::default();
        claims.add(0..super_block_len, "superblock");
        let at = geometry.super_block_at;
        claims.add(at..at + super_block_len, "superblock");
        if let Some(options) = geometry.options {
            claims.add(super_block_len..options.end(), "codec options");
        }
        claims.add(layout.inodes.start..layout.inodes.end, "inode table");
        claims.add(layout.directories.start..layout.directories.end, "directory table");
        for (table, owner) in [
            (&layout.fragments, "fragment table"),
            (&layout.export, "export table"),
            (&Some(geometry.ids.clone()), "id table"),
        ] {
            if let Some(table) = table {
                claims.add_table(table, table.list_start, owner);
            }
        }
        if let Some(xattrs) = &geometry.xattrs {
            claims.add(xattrs.pairs.start..xattrs.pairs.end, "xattr table");
            claims.add_table(&xattrs.sets, xattrs.head, "xattr table");
            claims.add(xattrs.head..xattrs.sets.list_start, "xattr table");
        }
        // The superblock of a streamed image stands behind the padding.
        let padding_end = if at < geometry.bytes_used { geometry.image_len } else { at };
        claims.add(geometry.bytes_used..padding_end, "padding");
        claims.rows.extend(walk::data_claims(self)?);
        claims.rows.sort_by_key(|(range, _)| range.start);
        Ok(space_owners(claims.rows, geometry.image_len))
    }
}

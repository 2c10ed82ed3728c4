//! Who owns each byte of an image.
//!
//! Owns the map from structures to ranges, for every image that can be walked.

use crate::disk::*;
use crate::inode::RawKind;
use crate::table::Table;
use crate::volume::SquashfsVolume;
use crate::walk::Budget;
use packfs_core::{Result, SpaceOwner, space_owners};
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
        let super_block_len = size_of::<SuperBlock>() as u64;
        let mut claims = Claims::default();
        claims.add(0..super_block_len, "superblock");
        let at = geometry.super_block_at;
        claims.add(at..at + super_block_len, "superblock");
        if let Some(options) = geometry.options {
            claims.add(super_block_len..options.end(), "codec options");
        }
        claims.add(geometry.inodes.start..geometry.inodes.end, "inode table");
        claims.add(geometry.directories.start..geometry.directories.end, "directory table");
        for (table, owner) in [
            (&geometry.fragments, "fragment table"),
            (&geometry.export, "export table"),
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
        self.claim_fragments(&mut claims)?;
        self.claim_files(&mut claims)?;
        claims.rows.sort_by_key(|(range, _)| range.start);
        Ok(space_owners(claims.rows, geometry.image_len))
    }

    fn claim_fragments(&self, claims: &mut Claims) -> Result<()> {
        let Some(table) = &self.geometry.fragments else { return Ok(()) };
        let place = crate::corruption::Place::at("fragment", table.start());
        table.each_row(&self.metadata, |_, row: FragmentEntry| {
            let (start, stored) = self.check_fragment(&row, place)?;
            claims.add(start..start + u64::from(stored.len), "fragments");
            Ok(())
        })
    }

    fn claim_files(&self, claims: &mut Claims) -> Result<()> {
        let mut budget = Budget::of(&self.geometry.inodes);
        self.each_inode(|_, raw| {
            if let RawKind::File(file) = &raw.kind {
                budget.spend(raw.place, self.word_count(file) * 4)?;
            }
            claims.add(self.data_range(raw)?, "file data");
            Ok(())
        })
    }
}

//! Who owns each byte of an image.
//!
//! Owns the map from structures to ranges, for every image that can be walked.

use crate::corruption::Place;
use crate::inode::RawKind;
use crate::table::Table;
use crate::volume::LegacyVolume;
use crate::walk::Budget;
use packfs_core::{Result, SpaceOwner, space_owners};
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
}

impl LegacyVolume {
    /// See [`packfs_core::Volume::space`].
    pub(crate) fn space_owners(&self) -> Result<Vec<SpaceOwner>> {
        let geometry = &self.geometry;
        let mut claims = Claims::default();
        claims.add(0..geometry.data_start, "superblock");
        claims.add(geometry.inodes.start..geometry.inodes.end, "inode table");
        claims.add(geometry.directories.start..geometry.directories.end, "directory table");
        let tables: [(&Option<Table>, _); 2] =
            [(&geometry.fragments, "fragment table"), (&geometry.export, "export table")];
        for (table, owner) in tables {
            if let Some(table) = table {
                claims.add(table.start()..table.list_end(), owner);
            }
        }
        claims.add(geometry.uids.start..geometry.uids.end(), "owners");
        claims.add(geometry.gids.start..geometry.gids.end(), "owners");
        claims.add(geometry.bytes_used..geometry.image_len, "padding");
        self.claim_fragments(&mut claims)?;
        self.claim_files(&mut claims)?;
        claims.rows.sort_by_key(|(range, _)| range.start);
        Ok(space_owners(claims.rows, geometry.image_len))
    }

    fn claim_fragments(&self, claims: &mut Claims) -> Result<()> {
        self.each_fragment(|_, row| {
            let (start, stored) = self.check_fragment(row, Place::at("fragment", row.start_block))?;
            claims.add(start..start + u64::from(stored.len), "fragments");
            Ok(())
        })
    }

    fn claim_files(&self, claims: &mut Claims) -> Result<()> {
        let mut budget = Budget::of(&self.geometry.inodes);
        let word_len = self.geometry.version().block_word_len();
        self.each_inode(|_, raw| {
            if let RawKind::File(file) = &raw.kind {
                budget.spend(raw.place, self.word_count(file) * word_len)?;
            }
            claims.add(self.data_range(raw)?, "file data");
            Ok(())
        })
    }
}

//! Who owns each byte of an image.
//!
//! Owns the map from structures to ranges, for every image that can be walked.

use crate::volume::LegacyVolume;
use packfs_core::{Result, SpaceOwner, space_owners};
use packfs_squashfs_metadata::{Table, walk};
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
        let layout = &geometry.layout;
        let mut claims = Claims::default();
        claims.add(0..layout.data.start, "superblock");
        claims.add(layout.inodes.start..layout.inodes.end, "inode table");
        claims.add(layout.directories.start..layout.directories.end, "directory table");
        let tables: [(&Option<Table>, _); 2] =
            [(&layout.fragments, "fragment table"), (&layout.export, "export table")];
        for (table, owner) in tables {
            if let Some(table) = table {
                claims.add(table.start()..table.list_end(), owner);
            }
        }
        claims.add(geometry.uids.start..geometry.uids.end(), "owners");
        claims.add(geometry.gids.start..geometry.gids.end(), "owners");
        claims.add(geometry.bytes_used..geometry.image_len, "padding");
        claims.rows.extend(walk::data_claims(self)?);
        claims.rows.sort_by_key(|(range, _)| range.start);
        Ok(space_owners(claims.rows, geometry.image_len))
    }
}

//! Owners of an image's bytes: those of all generations, to which each adds its own.

use crate::records::Records;
use crate::table::Table;
use crate::walk;
use packfs_core::Result;
use packfs_format::{SpaceOwner, space_owners};
use std::ops::Range;

/// Claims on an image; of those that start at one byte the first wins.
#[derive(Default)]
pub(crate) struct SpaceClaims {
    rows: Vec<(Range<u64>, &'static str)>,
}

impl SpaceClaims {
    /// Adds what is called `owner` in a map of the space.
    pub(crate) fn add(&mut self, range: Range<u64>, owner: &'static str) {
        if !range.is_empty() {
            self.rows.push((range, owner));
        }
    }

    /// Adds the blocks of a lookup table, and the list that follows them.
    pub(crate) fn add_table(&mut self, table: &Table, owner: &'static str) {
        self.add(table.start()..table.list_end(), owner);
    }

    /// Adds what every image has, and gives each byte of `image_len` to one owner.
    ///
    /// Errors: the first structure that cannot be read.
    pub(crate) fn owners<R: Records>(mut self, records: &R, image_len: u64) -> Result<Vec<SpaceOwner>> {
        let layout = records.layout();
        self.add(layout.inodes.start..layout.inodes.end, "inode table");
        self.add(layout.directories.start..layout.directories.end, "directory table");
        for (table, owner) in [(&layout.fragments, "fragment table"), (&layout.export, "export table")] {
            if let Some(table) = table {
                self.add_table(table, owner);
            }
        }
        self.rows.extend(walk::data_claims(records)?);
        self.rows.sort_by_key(|(range, _)| range.start);
        Ok(space_owners(self.rows, image_len))
    }
}

//! Owners of an image's bytes that all versions have in common.

use crate::records::Records;
use crate::table::Table;
use crate::walk;
use packfs_core::Result;
use packfs_format::{SpaceOwner, space_owners};
use std::ops::Range;

/// Claims on an image; of claims with the same start, the first prevails.
#[derive(Default)]
pub(crate) struct SpaceClaims {
    rows: Vec<(Range<u64>, &'static str)>,
}

impl SpaceClaims {
    pub(crate) fn add(&mut self, range: Range<u64>, owner: &'static str) {
        if !range.is_empty() {
            self.rows.push((range, owner));
        }
    }

    pub(crate) fn add_table(&mut self, table: &Table, owner: &'static str) {
        self.add(table.start()..table.list_end(), owner);
    }

    /// Adds the common claims, and assigns each byte of `image_len` to one owner.
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

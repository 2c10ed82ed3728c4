//! Every record reachable through directories, without recursion.
//!
//! Owns the walk of the space map, and the budget that it shares with the check. Invariant: ends
//! for every image. A directory is entered once, and reads are bounded by the length of the image.

use crate::corruption::{Corruption, Place};
use crate::dir::Listing;
use crate::disk::FLAG_DIRECTORY;
use crate::open::View;
use crate::record::Record;
use crate::rock_ridge::RockRidge;
use crate::volume::Iso9660Volume;
use packfs_core::Result;
use packfs_format::Budget;
use std::collections::HashSet;

impl Iso9660Volume {
    /// Returns a budget of the image's length, for directories or for continuation areas.
    pub(crate) fn budget(&self) -> Budget {
        Budget::new(self.geometry.image_len)
    }

    /// Calls `visit` for each record, including those of directories themselves, of the tree whose
    /// root's record of itself is at `root_at`; system use entries are only read in the displayed
    /// tree. Files of several records are represented by their first.
    ///
    /// Errors: the first unreadable structure, and directories that overlap.
    pub(crate) fn each_record(
        &self,
        root_at: u64,
        mut visit: impl FnMut(&Record, &RockRidge) -> Result<()>,
    ) -> Result<()> {
        let is_shown = root_at == self.geometry.root_at;
        let rock_ridge = |record: &Record| match self.geometry.view {
            View::RockRidge if is_shown => self.rock_ridge(record),
            _ => Ok(RockRidge::default()),
        };
        let root = Record::read(&self.sectors, root_at, self.geometry.image_len)?;
        let Some(root) = root else { return Ok(()) };
        let mut seen = HashSet::new();
        let mut budget = self.budget();
        let mut areas = self.budget();
        let mut open = vec![(root.data_at(self.geometry.block_len), root.data_len())];
        while let Some((start, len)) = open.pop() {
            if !seen.insert(start) {
                continue;
            }
            budget.spend(len, || Corruption::Overlap { place: Place::at("directory", start) })?;
            let mut listing = Listing::new(self, start, len)?;
            while let Some(record) = listing.next_first()? {
                let found = rock_ridge(&record)?;
                let len = found.areas.iter().map(|area| area.1).sum();
                areas.spend(len, || Corruption::Overlap { place: record.place() })?;
                visit(&record, &found)?;
                if record.has(FLAG_DIRECTORY) && !record.is_self_or_parent() {
                    open.push((record.data_at(self.geometry.block_len), record.data_len()));
                }
            }
        }
        Ok(())
    }
}

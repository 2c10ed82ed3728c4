//! Every record that an image's directories lead to, without recursion.
//!
//! Owns the walk of the space map, and the budget that it shares with the check. Invariant: ends
//! for every image. A directory is entered once, and no more is read than the image can hold.

use crate::corruption::{Corruption, Place};
use crate::dir::Listing;
use crate::disk::FLAG_DIRECTORY;
use crate::open::View;
use crate::record::Record;
use crate::rock_ridge::RockRidge;
use crate::volume::Iso9660Volume;
use packfs_core::Result;
use std::collections::HashSet;

/// Bytes that may still be read of directories or continuation areas. Those of a sound image do not
/// overlap, so their sum is at most the image's length. An image that refers to the same bytes
/// repeatedly exhausts it.
pub(crate) struct Budget(u64);

impl Budget {
    /// Returns the budget of an image: its length.
    pub(crate) fn of(volume: &Iso9660Volume) -> Self {
        Budget(volume.geometry.image_len)
    }

    /// Takes `len` bytes, if there are so many left.
    pub(crate) fn spend(&mut self, place: Place, len: u64) -> Result<()> {
        self.0 = self.0.checked_sub(len).ok_or(Corruption::Overlap { place })?;
        Ok(())
    }
}

impl Iso9660Volume {
    /// Calls `visit` for each record, those of directories themselves included, of the tree whose
    /// root's record of itself is at `root_at`; system use entries are only looked at in the tree
    /// that is shown. Files of several records come with their first.
    ///
    /// Errors: the first thing that cannot be read, and directories that overlap.
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
        let mut budget = Budget::of(self);
        let mut areas = Budget::of(self);
        let mut open = vec![(root.data_at(self.geometry.block_len), root.data_len())];
        while let Some((start, len)) = open.pop() {
            if !seen.insert(start) {
                continue;
            }
            budget.spend(Place::at("directory", start), len)?;
            let mut listing = Listing::new(self, start, len)?;
            while let Some(record) = listing.next_first()? {
                let found = rock_ridge(&record)?;
                areas.spend(record.place(), found.areas.iter().map(|area| area.1).sum())?;
                visit(&record, &found)?;
                if record.has(FLAG_DIRECTORY) && !record.is_self_or_parent() {
                    open.push((record.data_at(self.geometry.block_len), record.data_len()));
                }
            }
        }
        Ok(())
    }
}

//! Checks every table of an image, of its current state and of all snapshots. Clusters are not
//! decoded.

mod refcounts;

use crate::corruption::Corruption;
use crate::disk::{CORRUPT, DIRTY};
use crate::layers::cut_text;
use crate::open::{L1, REFCOUNTS_MAX};
use crate::snapshots::{self, Snapshot};
use crate::tables::Place;
use crate::volume::QcowVolume;
use packfs_core::{Result, len_of};
use packfs_format::check::{Report, check_unused};
use packfs_format::{Budget, Finding};
use std::collections::HashSet;

impl QcowVolume {
    pub(crate) fn check_all(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new("qcow2", found);
        let geometry = &self.top.geometry;
        if geometry.incompatible & DIRTY != 0 {
            report.warn("header", "not closed cleanly: reference counts may be wrong");
        }
        if geometry.incompatible & CORRUPT != 0 {
            report.warn("header", "marked corrupt");
        }
        let refcounts = geometry.check_table(geometry.refcounts.clone(), "reference counts");
        report.refused("header", refcounts.map_err(Into::into))?;
        let (found, max) = (len_of(&geometry.refcounts), REFCOUNTS_MAX);
        if found > max {
            report.error("header", Corruption::TableBytes { what: "reference counts", found, max });
        }
        let mut seen = HashSet::new();
        let mut is_sound = self.check_state(&geometry.l1, &mut seen, &mut report)?;
        match report.refused("snapshots", snapshots::read(&*self.image, geometry))? {
            None => is_sound = false,
            Some((snapshots, _)) => {
                let mut budget = Budget::new(geometry.image_len);
                for snapshot in snapshots {
                    is_sound &= self.check_snapshot(&snapshot, &mut budget, &mut seen, &mut report)?;
                }
            }
        }
        // Counts of an image that was not closed are recomputed when it is opened. Subclusters
        // would count as separate uses.
        if is_sound && geometry.incompatible & DIRTY == 0 && !geometry.is_extended() {
            self.check_refcounts(&mut report)?;
        }
        if is_sound {
            check_unused(&self.space_owners()?, &mut report);
        }
        Ok(())
    }

    fn check_snapshot(
        &self,
        snapshot: &Snapshot,
        budget: &mut Budget,
        seen: &mut HashSet<u64>,
        report: &mut Report<'_>,
    ) -> Result<bool> {
        let (l1, place) = (&snapshot.l1, format!("snapshot {}", snapshot.words()));
        let placed = self.top.geometry.check_l1(l1, snapshot.disk_len, "L1 table");
        if report.refused(&place, placed.map_err(Into::into))?.is_none() {
            return Ok(false);
        }
        if !budget.take(len_of(&l1.range())) {
            report.error(place, "its L1 table overlaps those of other snapshots");
            return Ok(false);
        }
        self.check_state(l1, seen, report)
    }

    /// Checks the tables of one state; returns true if all of them are readable. Tables in `seen`
    /// belong to another state.
    fn check_state(&self, l1: &L1, seen: &mut HashSet<u64>, report: &mut Report<'_>) -> Result<bool> {
        let tables = &self.top.tables;
        let mut is_sound = true;
        let mut own = HashSet::new();
        tables.each_table(l1, &mut |index, at| {
            let place = || format!("L1 entry {index}");
            let placed = tables.check_table(at).map_err(Into::into);
            if report.refused(place(), placed)?.is_none() {
                is_sound = false;
                return Ok(!report.is_full());
            }
            if !own.insert(at) {
                report.error(place(), format_args!("the L2 table at {at:#x} is that of another entry, too"));
                is_sound = false;
            } else if seen.insert(at) {
                is_sound &= self.check_table(l1, index, report)?;
            }
            Ok(!report.is_full())
        })?;
        Ok(is_sound)
    }

    fn check_table(&self, l1: &L1, index: u64, report: &mut Report<'_>) -> Result<bool> {
        let mut is_sound = true;
        self.top.tables.each_of_table(l1, index, &mut |part, place| {
            if let Some(at) = self.top.tables.cut_from(&part, place) {
                report.warn(format_args!("L2 table {index}"), cut_text(at));
            }
            if let Place::Fault(fault) = place {
                is_sound = false;
                report.error(format_args!("L2 table {index}"), fault);
            }
            Ok(!report.is_full())
        })?;
        Ok(is_sound)
    }
}

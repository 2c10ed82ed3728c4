//! Owners of a file's bytes, and its end.

use crate::open::{Geometry, L1, REFCOUNTS_MAX};
use crate::snapshots;
use crate::tables::Place;
use crate::volume::QcowVolume;
use packfs_core::{Result, len_of, parts_of, range_at, usize_of};
use packfs_format::{Claims, SpaceOwner};
use std::collections::HashSet;
use std::ops::Range;

/// Bytes of the table of reference counts that are read at once.
const REFCOUNTS_AT_ONCE: u64 = 64 << 10;
/// Bits of a row of that table that are an offset.
pub(crate) const REFCOUNT_OFFSET_MASK: u64 = !0x1ff;

/// Bytes left for L1 tables of snapshots. Those of a sound image lie side by side, so that all of
/// them fit into the file.
pub(crate) struct Budget(u64);

impl Budget {
    pub(crate) fn new(geometry: &Geometry) -> Budget {
        Budget(geometry.image_len)
    }

    /// Takes the room of a table; false if not so much is left.
    pub(crate) fn has_room_for(&mut self, l1: &L1) -> bool {
        let left = self.0.checked_sub(len_of(&l1.range()));
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

/// Takes the bytes that something owns.
type Claim<'a> = dyn FnMut(Range<u64>, &'static str) + 'a;

impl QcowVolume {
    /// See [`packfs_format::Volume::space`].
    pub(crate) fn space_owners(&self) -> Result<Vec<SpaceOwner>> {
        let geometry = &self.top.geometry;
        let mut claims = Claims::new();
        self.each_claim(&mut |range, owner| claims.add(range, owner))?;
        Ok(claims.owners(geometry.image_len))
    }

    /// Returns the end of the last byte that something owns.
    pub(crate) fn used_len(&self) -> Result<u64> {
        let mut end = 0;
        self.each_claim(&mut |range, _| end = range.end.max(end))?;
        Ok(end.min(self.top.geometry.image_len))
    }

    /// Calls `claim` for everything that the header and tables name.
    pub(crate) fn each_claim(&self, claim: &mut Claim<'_>) -> Result<()> {
        let geometry = &self.top.geometry;
        claim(0..geometry.cluster_len(), "header");
        claim(geometry.refcounts.clone(), "reference counts");
        self.claim_refcounts(claim)?;
        let (snapshots, end) = snapshots::read(&*self.image, geometry)?;
        claim(geometry.snapshots_at.min(end)..end, "snapshots");
        let mut tables = HashSet::new();
        self.claim_state(&geometry.l1, &mut tables, claim)?;
        let mut budget = Budget::new(geometry);
        for snapshot in snapshots {
            let is_sound = geometry.check_l1(&snapshot.l1, snapshot.disk_len, "L1 table").is_ok();
            if is_sound && budget.has_room_for(&snapshot.l1) {
                self.claim_state(&snapshot.l1, &mut tables, claim)?;
            }
        }
        Ok(())
    }

    /// Blocks of reference counts.
    fn claim_refcounts(&self, claim: &mut Claim<'_>) -> Result<()> {
        let geometry = &self.top.geometry;
        let len = len_of(&geometry.refcounts).min(REFCOUNTS_MAX);
        let table =
            geometry.refcounts.start..range_at(geometry.refcounts.start, len).end.min(geometry.image_len);
        for part in parts_of(table, REFCOUNTS_AT_ONCE) {
            let mut bytes = vec![0; usize_of(len_of(&part))];
            self.image.read_exact_at(part.start, &mut bytes)?;
            for raw in bytes.chunks_exact(8) {
                let at = u64::from_be_bytes(raw.try_into().unwrap_or_default()) & REFCOUNT_OFFSET_MASK;
                if at != 0 {
                    claim(range_at(at, geometry.cluster_len()), "reference counts");
                }
            }
        }
        Ok(())
    }

    /// Tables and clusters of one state of the disk; tables that were claimed are left out.
    fn claim_state(&self, l1: &L1, tables: &mut HashSet<u64>, claim: &mut Claim<'_>) -> Result<()> {
        let geometry = &self.top.geometry;
        claim(l1.range(), "L1 table");
        self.top.tables.each_table(l1, &mut |index, at| {
            if self.top.tables.check_table(at).is_err() || !tables.insert(at) {
                return Ok(true);
            }
            claim(range_at(at, geometry.cluster_len()), "L2 table");
            self.top.tables.each_of_table(l1, index, &mut |part, place| {
                match place {
                    Place::Stored(at) => claim(range_at(at, len_of(&part)), "file data"),
                    Place::Compressed { at, len, .. } => claim(range_at(at, len.into()), "file data"),
                    Place::Unallocated | Place::Zero | Place::Fault(_) => {}
                }
                Ok(true)
            })?;
            Ok(true)
        })
    }
}

//! Owners of a file's bytes, and its end.

use crate::open::{L1, REFCOUNTS_MAX};
use crate::snapshots;
use crate::tables::Place;
use crate::volume::QcowVolume;
use packfs_core::{Result, len_of, parts_of, range_at, usize_of};
use packfs_format::{Budget, Claims, SpaceOwner};
use std::collections::HashSet;
use std::ops::Range;

const REFCOUNTS_AT_ONCE: u64 = 64 << 10;
/// Offset bits of a row of the refcount table.
pub(crate) const REFCOUNT_OFFSET_MASK: u64 = !0x1ff;

type Claim<'a> = dyn FnMut(Range<u64>, &'static str) + 'a;

impl QcowVolume {
    /// See [`packfs_format::Space::space`].
    pub(crate) fn space_owners(&self) -> Result<Vec<SpaceOwner>> {
        let geometry = &self.top.geometry;
        let mut claims = Claims::new();
        self.each_claim(&mut |range, owner| claims.add(range, owner))?;
        Ok(claims.owners(geometry.image_len))
    }

    /// Returns the end of the last claim.
    pub(crate) fn used_len(&self) -> Result<u64> {
        let mut end = 0;
        self.each_claim(&mut |range, _| end = range.end.max(end))?;
        Ok(end.min(self.top.geometry.image_len))
    }

    /// Calls `claim` for every structure and cluster.
    pub(crate) fn each_claim(&self, claim: &mut Claim<'_>) -> Result<()> {
        let geometry = &self.top.geometry;
        claim(0..geometry.cluster_len(), "header");
        claim(geometry.refcounts.clone(), "reference counts");
        self.claim_refcounts(claim)?;
        let (snapshots, end) = snapshots::read(&*self.image, geometry)?;
        claim(geometry.snapshots_at.min(end)..end, "snapshots");
        let mut tables = HashSet::new();
        self.claim_state(&geometry.l1, &mut tables, claim)?;
        let mut budget = Budget::new(geometry.image_len);
        for snapshot in snapshots {
            let is_sound = geometry.check_l1(&snapshot.l1, snapshot.disk_len, "L1 table").is_ok();
            if is_sound && budget.take(len_of(&snapshot.l1.range())) {
                self.claim_state(&snapshot.l1, &mut tables, claim)?;
            }
        }
        Ok(())
    }

    /// Claims blocks of reference counts.
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

    /// Claims tables and clusters of one state of the disk, except tables that were already
    /// claimed.
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

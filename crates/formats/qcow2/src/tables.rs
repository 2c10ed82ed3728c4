//! L1 and L2 tables: from a range of the disk to the clusters that hold it.
//!
//! Owns the reading of tables, each where it is needed, through bounded caches. Invariant: a place
//! that is handed out lies within the file; a cluster elsewhere becomes a fault of its own.

use crate::corruption::Corruption;
use crate::disk::*;
use crate::open::{Geometry, L1};
use packfs_core::{Image, Result, range_at, u32_of, usize_of};
use packfs_format::BlockCache;
use std::mem::size_of;
use std::ops::Range;
use std::sync::Arc;

/// Entries of an L1 table that are read at once.
const L1_ENTRIES_AT_ONCE: u64 = 512;
/// Limits of the two caches in bytes.
const L1_CACHE_BYTES: usize = 1 << 20;
const L2_CACHE_BYTES: usize = 16 << 20;

/// Place of a range of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nowhere: the backing file has it, or it reads as zeros.
    Unallocated,
    /// Nowhere: it reads as zeros.
    Zero,
    /// In the file from here on, as it is.
    Stored(u64),
    /// From byte `start` on of a compressed cluster, of which these bytes are stored.
    Compressed { at: u64, len: u32, start: u32 },
    /// In a cluster that cannot be there.
    Fault(Corruption),
}

/// A stretch of the disk with one place; `start` counts from the first byte that its L2 table
/// covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: u64,
    len: u64,
    place: Place,
}

/// Tables of one image.
pub(crate) struct Tables {
    image: Arc<dyn Image>,
    geometry: Arc<Geometry>,
    l1_parts: BlockCache<Vec<u64>>,
    l2_tables: BlockCache<Vec<Run>>,
}

impl Tables {
    pub(crate) fn new(image: Arc<dyn Image>, geometry: Arc<Geometry>) -> Tables {
        let (l1_parts, l2_tables) = (BlockCache::new(L1_CACHE_BYTES), BlockCache::new(L2_CACHE_BYTES));
        Tables { image, geometry, l1_parts, l2_tables }
    }

    /// Calls `visit` for the stretches of `range` of a disk, in order and without a gap, each with
    /// its place. Ends early when `visit` returns false.
    ///
    /// Errors: those of `visit`, `Io`.
    pub(crate) fn each(
        &self,
        l1: &L1,
        range: Range<u64>,
        visit: &mut dyn FnMut(Range<u64>, Place) -> Result<bool>,
    ) -> Result<()> {
        let span = self.geometry.table_span();
        let mut at = range.start;
        while at < range.end {
            let index = at.checked_div(span).unwrap_or(0);
            let start = index.saturating_mul(span);
            let part = at..range_at(start, span).end.min(range.end);
            let goes_on = match self.table(l1, index)? {
                Ok(None) => visit(part.clone(), Place::Unallocated)?,
                Ok(Some(runs)) => visit_runs(&runs, start, &part, visit)?,
                Err(fault) => visit(part.clone(), Place::Fault(fault))?,
            };
            if !goes_on {
                return Ok(());
            }
            at = part.end;
        }
        Ok(())
    }

    /// Calls `visit` for all that one L2 table covers, as [`Tables::each`] does: snapshots have the
    /// state of a machine after the end of the disk.
    pub(crate) fn each_of_table(
        &self,
        l1: &L1,
        index: u64,
        visit: &mut dyn FnMut(Range<u64>, Place) -> Result<bool>,
    ) -> Result<()> {
        let span = self.geometry.table_span();
        self.each(l1, range_at(index.saturating_mul(span), span), visit)
    }

    /// Calls `visit` for the offset of each L2 table, as it is stored, with its number.
    ///
    /// Errors: those of `visit`, `Io`.
    pub(crate) fn each_table(&self, l1: &L1, visit: &mut dyn FnMut(u64, u64) -> Result<bool>) -> Result<()> {
        for first in (0..l1.count).step_by(usize_of(L1_ENTRIES_AT_ONCE)) {
            for (index, entry) in (first..).zip(self.l1_part(l1, first)?.iter()) {
                let at = entry & OFFSET_MASK;
                if at != 0 && !visit(index, at)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn l1_part(&self, l1: &L1, first: u64) -> Result<Arc<Vec<u64>>> {
        let at = l1.at.saturating_add(first.saturating_mul(8));
        self.l1_parts.get_or(at, || {
            let count = l1.count.saturating_sub(first).min(L1_ENTRIES_AT_ONCE);
            let mut bytes = vec![0; usize_of(count.saturating_mul(8))];
            self.image.read_exact_at(at, &mut bytes)?;
            let entries: Vec<u64> = numbers(&bytes).collect();
            Ok((entries, bytes.len()))
        })
    }

    /// The runs of the L2 table with this number; `None` if there is none.
    fn table(&self, l1: &L1, index: u64) -> Result<Result<Option<Arc<Vec<Run>>>, Corruption>> {
        let within = index % L1_ENTRIES_AT_ONCE;
        let part = self.l1_part(l1, index.saturating_sub(within))?;
        let at = part.get(usize_of(within)).map_or(0, |entry| entry & OFFSET_MASK);
        if at == 0 {
            return Ok(Ok(None));
        }
        if let Err(fault) = self.check_table(at) {
            return Ok(Err(fault));
        }
        let disk_at = index.saturating_mul(self.geometry.table_span());
        // A table may be that of several stretches of a disk; only messages tell them apart.
        Ok(Ok(Some(self.l2_tables.get_or(at, || {
            let mut bytes = vec![0; usize_of(self.geometry.cluster_len())];
            self.image.read_exact_at(at, &mut bytes)?;
            let runs = self.runs(&bytes, disk_at);
            let memory = runs.len().saturating_mul(size_of::<Run>());
            Ok((runs, memory))
        })?)))
    }

    /// Checks the place of an L2 table.
    pub(crate) fn check_table(&self, at: u64) -> Result<(), Corruption> {
        self.geometry.check_table(range_at(at, self.geometry.cluster_len()), "L2 table")
    }

    /// The stretches that an L2 table describes, those that go on joined.
    fn runs(&self, table: &[u8], disk_at: u64) -> Vec<Run> {
        let mut runs = Runs::default();
        let cluster_len = self.geometry.cluster_len();
        if self.geometry.is_extended() {
            let mut words = numbers(table);
            while let (Some(entry), Some(bitmap)) = (words.next(), words.next()) {
                let at = disk_at.saturating_add(runs.end);
                if entry & COMPRESSED != 0 {
                    runs.push(cluster_len, self.compressed(entry, at));
                } else {
                    self.push_subclusters(&mut runs, entry, bitmap, at);
                }
            }
        } else {
            for entry in numbers(table) {
                let at = disk_at.saturating_add(runs.end);
                let place = match entry & OFFSET_MASK {
                    _ if entry & COMPRESSED != 0 => self.compressed(entry, at),
                    _ if entry & ZERO != 0 && self.geometry.version == 2 => {
                        Place::Fault(Corruption::ZeroInVersion2 { disk_at: at })
                    }
                    _ if entry & ZERO != 0 => Place::Zero,
                    0 => Place::Unallocated,
                    offset => self.stored(offset, 0, at),
                };
                self.push_cut(&mut runs, cluster_len, place);
            }
        }
        runs.runs
    }

    /// A cluster with subclusters, each allocated, zero or neither.
    fn push_subclusters(&self, runs: &mut Runs, entry: u64, bitmap: u64, disk_at: u64) {
        let len = self.geometry.cluster_len().checked_div(SUBCLUSTERS.into()).unwrap_or(0);
        let (zero, allocated) = (bitmap >> 32, bitmap & u64::from(u32::MAX));
        let offset = entry & OFFSET_MASK;
        let has_both = zero & allocated != 0 || offset == 0 && allocated != 0;
        for number in 0..SUBCLUSTERS {
            let within = u64::from(number).saturating_mul(len);
            let has = |bits: u64| bits.checked_shr(number).is_some_and(|bits| bits & 1 != 0);
            let place = match () {
                () if has_both => Place::Fault(Corruption::Bitmap { disk_at, found: bitmap }),
                () if has(zero) => Place::Zero,
                () if has(allocated) => self.stored(offset, within, disk_at),
                () => Place::Unallocated,
            };
            self.push_cut(runs, len, place);
        }
    }

    /// Adds a stretch. The last cluster of a file may be cut short: the rest reads as zeros.
    fn push_cut(&self, runs: &mut Runs, len: u64, place: Place) {
        let stored = match place {
            Place::Stored(at) => self.geometry.image_len.saturating_sub(at).min(len),
            _ => len,
        };
        runs.push(stored, place);
        runs.push(len.saturating_sub(stored), Place::Zero);
    }

    /// Bytes `within` a cluster at `offset`.
    fn stored(&self, offset: u64, within: u64, disk_at: u64) -> Place {
        let (limit, cluster_len) = (self.geometry.image_len, self.geometry.cluster_len());
        let fault = if !offset.is_multiple_of(cluster_len) {
            Corruption::ClusterAlign { disk_at, at: offset, cluster_len }
        } else if offset >= limit {
            Corruption::ClusterPlace { disk_at, at: offset, limit }
        } else {
            return Place::Stored(offset.saturating_add(within));
        };
        Place::Fault(fault)
    }

    /// A compressed cluster: its offset in the lower bits, the sectors after its first in those
    /// above.
    fn compressed(&self, entry: u64, disk_at: u64) -> Place {
        let len_bits = self.geometry.cluster_bits.saturating_sub(8);
        let at_bits = 62_u32.saturating_sub(len_bits);
        let low = |value: u64, bits: u32| value & (1_u64 << bits).wrapping_sub(1);
        let (at, sectors) = (low(entry, at_bits), low(entry >> at_bits, len_bits));
        let limit = self.geometry.image_len;
        if at >= limit {
            return Place::Fault(Corruption::ClusterPlace { disk_at, at, limit });
        }
        let len = sectors.saturating_add(1).saturating_mul(512).saturating_sub(at % 512);
        // Sectors are counted whole, but the last one of a file need not be.
        Place::Compressed { at, len: u32_of(len.min(limit.saturating_sub(at))), start: 0 }
    }
}

/// Stretches in order, those that go on joined.
#[derive(Default)]
struct Runs {
    runs: Vec<Run>,
    end: u64,
}

impl Runs {
    fn push(&mut self, len: u64, place: Place) {
        if len == 0 {
            return;
        }
        match self.runs.last_mut() {
            Some(last) if goes_on(last, &place) => last.len = last.len.saturating_add(len),
            _ => self.runs.push(Run { start: self.end, len, place }),
        }
        self.end = self.end.saturating_add(len);
    }
}

fn goes_on(run: &Run, next: &Place) -> bool {
    match (run.place, next) {
        (Place::Unallocated, Place::Unallocated) | (Place::Zero, Place::Zero) => true,
        (Place::Stored(at), Place::Stored(next)) => at.checked_add(run.len) == Some(*next),
        _ => false,
    }
}

/// Hands out the part of runs that lies in `range` of the disk; `start` is where the table begins.
fn visit_runs(
    runs: &[Run],
    start: u64,
    range: &Range<u64>,
    visit: &mut dyn FnMut(Range<u64>, Place) -> Result<bool>,
) -> Result<bool> {
    let within = range.start.saturating_sub(start);
    let first = runs.partition_point(|run| run.start.saturating_add(run.len) <= within);
    for run in runs.iter().skip(first) {
        let own = range_at(start.saturating_add(run.start), run.len);
        if own.start >= range.end {
            break;
        }
        let part = own.start.max(range.start)..own.end.min(range.end);
        let cut = part.start.saturating_sub(own.start);
        let place = match run.place {
            Place::Stored(at) => Place::Stored(at.saturating_add(cut)),
            Place::Compressed { at, len, .. } => Place::Compressed { at, len, start: u32_of(cut) },
            place => place,
        };
        if !visit(part, place)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The big-endian numbers of a table.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|raw| u64::from_be_bytes(raw.try_into().unwrap_or_default()))
}

//! L1 and L2 tables, which map ranges of the disk to clusters.
//!
//! Owns the reading of tables on demand, through bounded caches. Invariant: a returned position is
//! within the file; an invalid cluster becomes a fault.

use crate::corruption::Corruption;
use crate::disk::*;
use crate::open::{Geometry, L1};
use packfs_core::{Image, Result, len_of, range_at, u32_of, usize_of};
use packfs_format::{BlockCache, units::*};
use std::ops::Range;
use std::sync::Arc;

const L1_ENTRIES_AT_ONCE: u64 = 512;
/// Length of a slice of an L2 table, which is read at once; shorter tables have one.
const SLICE_LEN: u64 = 4096;
const TABLES_SEARCHED_MAX: u64 = 32;
const L1_CACHE_BYTES: usize = 1 << 20;
const L2_CACHE_BYTES: usize = 16 << 20;

/// Position of a range of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Not stored: in the backing file, or zeros.
    Unallocated,
    /// Not stored: zeros.
    Zero,
    /// Stored uncompressed at this offset.
    Stored(u64),
    /// Stored in a compressed cluster of `len` bytes, from its byte `start` on.
    Compressed { at: u64, len: u32, start: u32 },
    /// In an invalid cluster.
    Fault(Corruption),
}

pub(crate) struct Tables {
    image: Arc<dyn Image>,
    geometry: Arc<Geometry>,
    l1_parts: BlockCache<Vec<u64>>,
    slices: BlockCache<Vec<u64>>,
}

type Visit<'a> = dyn FnMut(Range<u64>, Place) -> Result<bool> + 'a;

impl Tables {
    pub(crate) fn new(image: Arc<dyn Image>, geometry: Arc<Geometry>) -> Tables {
        let l1_parts = BlockCache::new(L1_CACHE_BYTES);
        let slices = BlockCache::new(L2_CACHE_BYTES);
        Tables { image, geometry, l1_parts, slices }
    }

    /// Calls `visit` for parts of `range` of a disk, in order and without gaps, each with its
    /// position, until it returns false.
    ///
    /// Errors: those of `visit`, `Io`.
    pub(crate) fn each(&self, l1: &L1, range: Range<u64>, visit: &mut Visit<'_>) -> Result<()> {
        let span = self.geometry.table_span();
        let mut stretches = Stretches { range: range.clone(), pending: None, visit };
        let mut at = range.start;
        while at < range.end {
            let index = at.quotient(span);
            let start = index.times(span);
            let part = at..range_at(start, span).end.min(range.end);
            let goes_on = match self.table_at(l1, index)? {
                0 => stretches.push(part.clone(), Place::Unallocated)?,
                table_at => match self.check_table(table_at) {
                    Ok(()) => self.each_entry(table_at, start, &part, &mut stretches)?,
                    Err(fault) => stretches.push(part.clone(), Place::Fault(fault))?,
                },
            };
            if !goes_on {
                return Ok(());
            }
            at = part.end;
        }
        stretches.finish()
    }

    /// Returns the first byte of a part that is missing because its last cluster is truncated.
    pub(crate) fn cut_from(&self, part: &Range<u64>, place: Place) -> Option<u64> {
        let Place::Stored(at) = place else { return None };
        let is_last = at.plus(len_of(part)) == self.geometry.image_len;
        // Unwritten subclusters at the end may be missing.
        let parts = if self.geometry.is_extended() { SUBCLUSTERS.into() } else { 1_u64 };
        let unit = self.geometry.cluster_len().checked_div(parts).unwrap_or(1);
        let is_cut = part.end.checked_rem(unit) != Some(0);
        (is_last && is_cut && part.end < self.geometry.disk_len).then_some(part.end)
    }

    /// Searches a truncated cluster, in a disk of few tables.
    pub(crate) fn find_cut(&self, l1: &L1, disk_len: u64) -> Result<Option<u64>> {
        let is_whole = self.geometry.image_len.checked_rem(self.geometry.cluster_len()) == Some(0);
        let mut cut = None;
        if !is_whole && l1.count <= TABLES_SEARCHED_MAX {
            let end = l1.count.times(self.geometry.table_span()).min(disk_len);
            self.each(l1, 0..end, &mut |part, place| {
                cut = self.cut_from(&part, place);
                Ok(cut.is_none())
            })?;
        }
        Ok(cut)
    }

    /// Calls `visit` for everything that one L2 table covers, as [`Tables::each`] does: snapshots
    /// store the state of a machine after the end of the disk.
    pub(crate) fn each_of_table(&self, l1: &L1, index: u64, visit: &mut Visit<'_>) -> Result<()> {
        let span = self.geometry.table_span();
        self.each(l1, range_at(index.times(span), span), visit)
    }

    /// Calls `visit` for the stored offset of each L2 table, with its number.
    ///
    /// Errors: those of `visit`, `Io`.
    pub(crate) fn each_table(&self, l1: &L1, visit: &mut dyn FnMut(u64, u64) -> Result<bool>) -> Result<()> {
        for first in (0..l1.count).step_by(usize_of(L1_ENTRIES_AT_ONCE)) {
            for (index, entry) in (first..l1.count).zip(self.l1_part(l1, first)?.iter()) {
                let at = entry & OFFSET_MASK;
                if at != 0 && !visit(index, at)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns entries from `first` on, as many as one read contains.
    fn l1_part(&self, l1: &L1, first: u64) -> Result<Arc<Vec<u64>>> {
        let at = l1.at.plus(first.times(8));
        self.l1_parts.get_or(at, || {
            let room = left(self.image.len(), at) / 8;
            let mut bytes = vec![0; usize_of(room.min(L1_ENTRIES_AT_ONCE).times(8))];
            self.image.read_exact_at(at, &mut bytes)?;
            let entries: Vec<u64> = numbers(&bytes).collect();
            Ok((entries, bytes.len()))
        })
    }

    /// Returns the offset of an L2 table; 0 if it does not exist.
    fn table_at(&self, l1: &L1, index: u64) -> Result<u64> {
        if index >= l1.count {
            return Ok(0);
        }
        let within = index % L1_ENTRIES_AT_ONCE;
        let part = self.l1_part(l1, index.minus(within))?;
        Ok(part.get(usize_of(within)).map_or(0, |entry| entry & OFFSET_MASK))
    }

    pub(crate) fn check_table(&self, at: u64) -> Result<(), Corruption> {
        self.geometry.check_table(range_at(at, self.geometry.cluster_len()), "L2 table")
    }

    /// Passes on `part` of a disk according to the L2 table at `table_at`, which covers the disk
    /// from `start` on.
    fn each_entry(
        &self,
        table_at: u64,
        start: u64,
        part: &Range<u64>,
        stretches: &mut Stretches<'_, '_>,
    ) -> Result<bool> {
        let cluster_len = self.geometry.cluster_len();
        let words = if self.geometry.is_extended() { 2 } else { 1 };
        let per_slice = (SLICE_LEN.min(cluster_len) / 8).checked_div(words).unwrap_or(1).max(1);
        let mut index = part.start.minus(start).quotient(cluster_len);
        let mut disk_at = start.plus(index.times(cluster_len));
        while disk_at < part.end {
            let within = index.remainder(per_slice);
            let slice = index.minus(within).times(words).times(8);
            let slice = self.slice(table_at.plus(slice))?;
            let first = within.times(words);
            for entry in slice.within(usize_of(first)..).chunks(usize_of(words)) {
                if disk_at >= part.end {
                    break;
                }
                if !self.push_entry(entry, disk_at, stretches)? {
                    return Ok(false);
                }
                disk_at = disk_at.plus(cluster_len);
            }
            index = index.minus(within).plus(per_slice);
        }
        Ok(true)
    }

    fn slice(&self, at: u64) -> Result<Arc<Vec<u64>>> {
        self.slices.get_or(at, || {
            let mut bytes = vec![0; usize_of(SLICE_LEN.min(self.geometry.cluster_len()))];
            self.image.read_exact_at(at, &mut bytes)?;
            let words: Vec<u64> = numbers(&bytes).collect();
            Ok((words, bytes.len()))
        })
    }

    fn push_entry(&self, entry: &[u64], disk_at: u64, stretches: &mut Stretches<'_, '_>) -> Result<bool> {
        let cluster_len = self.geometry.cluster_len();
        let place = match *entry {
            [entry, ..] if entry & COMPRESSED != 0 => self.compressed(entry, disk_at),
            [entry, bitmap] => return self.push_subclusters(entry, bitmap, disk_at, stretches),
            [entry] if entry & ZERO != 0 && self.geometry.version == 2 => {
                Place::Fault(Corruption::ZeroInVersion2 { disk_at })
            }
            [entry] if entry & ZERO != 0 => Place::Zero,
            [entry] => match entry & OFFSET_MASK {
                0 => Place::Unallocated,
                offset => self.stored(offset, 0, disk_at),
            },
            _ => Place::Unallocated,
        };
        self.push_cut(range_at(disk_at, cluster_len), place, stretches)
    }

    /// Passes on a cluster with subclusters, each allocated, zero, or neither.
    fn push_subclusters(
        &self,
        entry: u64,
        bitmap: u64,
        disk_at: u64,
        stretches: &mut Stretches<'_, '_>,
    ) -> Result<bool> {
        let len = self.geometry.cluster_len().quotient(SUBCLUSTERS.into());
        let (zero, allocated) = (bitmap >> 32, bitmap & u64::from(u32::MAX));
        let offset = entry & OFFSET_MASK;
        let has_both = zero & allocated != 0 || offset == 0 && allocated != 0;
        for number in 0..SUBCLUSTERS {
            let within = u64::from(number).times(len);
            let has = |bits: u64| bits.checked_shr(number).is_some_and(|bits| bits & 1 != 0);
            let place = if has_both {
                Place::Fault(Corruption::Bitmap { disk_at, found: bitmap })
            } else if has(zero) {
                Place::Zero
            } else if has(allocated) {
                self.stored(offset, within, disk_at)
            } else {
                Place::Unallocated
            };
            if !self.push_cut(range_at(disk_at.plus(within), len), place, stretches)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Passes on a part. The last cluster of a file may be truncated: the rest reads as zeros.
    fn push_cut(&self, range: Range<u64>, place: Place, stretches: &mut Stretches<'_, '_>) -> Result<bool> {
        let len = len_of(&range);
        let stored = match place {
            Place::Stored(at) => left(self.geometry.image_len, at).min(len),
            _ => len,
        };
        let cut = range.start.plus(stored);
        Ok(stretches.push(range.start..cut, place)? && stretches.push(cut..range.end, Place::Zero)?)
    }

    /// Bytes `within` a cluster at `offset`.
    fn stored(&self, offset: u64, within: u64, disk_at: u64) -> Place {
        let limit = self.geometry.image_len;
        let cluster_len = self.geometry.cluster_len();
        let fault = if !offset.is_multiple_of(cluster_len) {
            Corruption::ClusterAlign { disk_at, at: offset, cluster_len }
        } else if offset >= limit {
            Corruption::ClusterPlace { disk_at, at: offset, limit }
        } else {
            return Place::Stored(offset.plus(within));
        };
        Place::Fault(fault)
    }

    /// Decodes the entry of a compressed cluster: its offset in the lower bits, the number of
    /// sectors after its first in those above.
    fn compressed(&self, entry: u64, disk_at: u64) -> Place {
        let len_bits = self.geometry.cluster_bits.minus(8);
        let at_bits = 62_u32.minus(len_bits);
        let low = |value: u64, bits: u32| value & (1_u64 << bits).wrapping_sub(1);
        let (at, sectors) = (low(entry, at_bits), low(entry >> at_bits, len_bits));
        let limit = self.geometry.image_len;
        if at >= limit {
            return Place::Fault(Corruption::ClusterPlace { disk_at, at, limit });
        }
        let len = sectors.plus(1).times(512).minus(at % 512);
        // The entry counts whole sectors, but the last one of a file may be truncated.
        Place::Compressed { at, len: u32_of(len.min(limit.minus(at))), start: 0 }
    }
}

/// Joins adjacent parts of a disk, and passes on those in a range.
struct Stretches<'r, 'v> {
    range: Range<u64>,
    pending: Option<(Range<u64>, Place)>,
    visit: &'r mut Visit<'v>,
}

impl Stretches<'_, '_> {
    /// Adds the next part; false if `visit` stopped.
    fn push(&mut self, whole: Range<u64>, place: Place) -> Result<bool> {
        let part = whole.start.max(self.range.start)..whole.end.min(self.range.end);
        if part.is_empty() {
            return Ok(true);
        }
        let cut = part.start.minus(whole.start);
        let place = match place {
            Place::Stored(at) => Place::Stored(at.plus(cut)),
            Place::Compressed { at, len, .. } => Place::Compressed { at, len, start: u32_of(cut) },
            place => place,
        };
        if let Some((last, own)) = &mut self.pending
            && goes_on(last, own, &place)
        {
            last.end = part.end;
            return Ok(true);
        }
        match self.pending.replace((part, place)) {
            Some((part, place)) => (self.visit)(part, place),
            None => Ok(true),
        }
    }

    fn finish(mut self) -> Result<()> {
        match self.pending.take() {
            Some((part, place)) => (self.visit)(part, place).map(drop),
            None => Ok(()),
        }
    }
}

fn goes_on(last: &Range<u64>, place: &Place, next: &Place) -> bool {
    match (place, next) {
        (Place::Unallocated, Place::Unallocated) | (Place::Zero, Place::Zero) => true,
        (Place::Stored(at), Place::Stored(next)) => at.checked_add(len_of(last)) == Some(*next),
        _ => false,
    }
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|raw| u64::from_be_bytes(raw.try_into().unwrap_or_default()))
}

//! The log as a ring of sectors. The first word of each is the number of the cycle, the round
//! through the log, in which it was written.

use crate::disk::{be32, part};
use crate::super_block::{SECTOR, SuperBlock};
use packfs_core::{Image, Result, usize_of};
use std::ops::Range;
use std::sync::Arc;

/// First bytes of a record.
pub(super) const MAGIC: u32 = 0xfeed_babe;
/// Bytes of a sector.
pub(super) const SECTOR_LEN: usize = 512;
/// Most bytes of the data of a record.
pub(super) const LEN_MAX: u64 = 256 << 10;
/// Bytes of data whose cycles a sector of the header keeps.
pub(super) const HEADER_COVERS: u64 = 32 << 10;
/// Records that may be on their way to the disk at once.
pub(super) const FLIGHT_MAX: u64 = 8;
/// Offset of the identifier of the filesystem in the header.
pub(super) const UUID_AT: usize = 304;
/// Sectors that searches read at once.
const STEP: u64 = 256;
/// Bit of version 4: records of more than 32 KiB.
const LONG_RECORDS: u16 = 0x0400;

/// Sectors of a log.
pub(super) struct Ring {
    image: Arc<dyn Image>,
    /// Offset of the first sector.
    start: u64,
    /// Number of sectors, at least 1.
    pub(super) count: u64,
    /// True if records may be longer than 32 KiB.
    pub(super) has_long_records: bool,
    pub(super) is_v5: bool,
    /// Identifier of the filesystem, which records hold.
    pub(super) uuid: [u8; 16],
}

impl Ring {
    /// Describes the sectors of a log at `range` of an image.
    pub(super) fn new(image: Arc<dyn Image>, range: Range<u64>, super_block: &SuperBlock) -> Self {
        Ring {
            image,
            start: range.start,
            count: (packfs_core::len_of(&range) / SECTOR).max(1),
            has_long_records: super_block.is_v5() || super_block.version_bits & LONG_RECORDS != 0,
            is_v5: super_block.is_v5(),
            uuid: super_block.uuid,
        }
    }

    /// Returns the sector that a number means, counted around the ring.
    pub(super) fn wrapped(&self, sector: u64) -> u64 {
        sector.checked_rem(self.count).unwrap_or(0)
    }

    /// Returns the number of sectors from `from` on to `to`, around the ring.
    pub(super) fn distance(&self, from: u64, to: u64) -> u64 {
        match to.checked_sub(from) {
            Some(distance) => distance,
            None => to.saturating_add(self.count).saturating_sub(from),
        }
    }

    /// Most sectors of a record, without its header.
    pub(super) fn record_sectors_max(&self) -> u64 {
        if self.has_long_records { LEN_MAX / SECTOR } else { HEADER_COVERS / SECTOR }
    }

    /// Most sectors that may be on their way to the disk at once.
    pub(super) fn flight_sectors_max(&self) -> u64 {
        self.record_sectors_max().saturating_mul(FLIGHT_MAX)
    }

    /// Reads sectors, around the ring, all of which the image has.
    pub(super) fn read(&self, sector: u64, count: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize_of(count.min(self.count).saturating_mul(SECTOR))];
        let first = self.wrapped(sector);
        let before_end = usize_of(self.count.saturating_sub(first).saturating_mul(SECTOR));
        let len = bytes.len();
        let (head, tail) = bytes.split_at_mut(before_end.min(len));
        self.image.read_exact_at(self.start.saturating_add(first.saturating_mul(SECTOR)), head)?;
        if !tail.is_empty() {
            self.image.read_exact_at(self.start, tail)?;
        }
        Ok(bytes)
    }

    /// Returns the cycle of a sector.
    pub(super) fn cycle(&self, sector: u64) -> Result<u32> {
        Ok(cycle(&self.read(sector, 1)?))
    }

    /// Returns the first sector of a range with this cycle.
    pub(super) fn find_cycle(&self, range: Range<u64>, wanted: u32) -> Result<Option<u64>> {
        self.find(range, |sector| cycle(sector) == wanted)
    }

    /// Returns the first sector of a range that begins a record; the range may go around the ring.
    pub(super) fn header_in(&self, range: Range<u64>) -> Result<Option<u64>> {
        self.find(range, is_header)
    }

    fn find(&self, range: Range<u64>, is_wanted: impl Fn(&[u8]) -> bool) -> Result<Option<u64>> {
        let mut at = range.start;
        while at < range.end {
            let bytes = self.read(at, STEP.min(range.end.saturating_sub(at)))?;
            let mut sectors = bytes.chunks_exact(SECTOR_LEN);
            if let Some(index) = sectors.position(&is_wanted) {
                return Ok(Some(at.saturating_add(index as u64)));
            }
            at = at.saturating_add(STEP.min(self.count));
        }
        Ok(None)
    }

    /// Returns the last sector of a range that begins a record; the range may go around the ring.
    pub(super) fn last_header_in(&self, range: Range<u64>) -> Result<Option<u64>> {
        let mut end = range.end;
        while end > range.start {
            let start = end.saturating_sub(STEP.min(self.count)).max(range.start);
            let bytes = self.read(start, end.saturating_sub(start))?;
            let mut sectors = bytes.chunks_exact(SECTOR_LEN);
            if let Some(index) = sectors.rposition(is_header) {
                return Ok(Some(start.saturating_add(index as u64)));
            }
            end = start;
        }
        Ok(None)
    }
}

/// Returns true if a sector begins a record.
pub(super) fn is_header(sector: &[u8]) -> bool {
    be32(sector, 0) == MAGIC
}

/// Returns the cycle of a sector: it stands behind the magic of a record.
pub(super) fn cycle(sector: &[u8]) -> u32 {
    match be32(sector, 0) {
        MAGIC => be32(sector, 4),
        number => number,
    }
}

/// Returns true if an image begins with sectors of the log of a filesystem.
pub(crate) fn is_log_of(image: &dyn Image, super_block: &SuperBlock) -> Result<bool> {
    let mut bytes = vec![0; usize_of(STEP.saturating_mul(SECTOR).saturating_mul(4))];
    let len = image.read_at(0, &mut bytes)?;
    let mut sectors = part(&bytes, 0, len).unwrap_or_default().chunks_exact(SECTOR_LEN);
    Ok(sectors.any(|sector| is_header(sector) && crate::disk::uuid(sector, UUID_AT) == super_block.uuid))
}

//! The log as a ring of sectors. The first word of each contains the cycle, the round through the
//! log, in which it was written.

use crate::disk::{RecHeader, XLOG_HEADER_MAGIC_NUM};
use crate::super_block::{SECTOR, SuperBlock};
use packfs_core::{Image, Result, usize_of};
use packfs_format::{structure, units::*};
use std::ops::Range;
use std::sync::Arc;
use zerocopy::big_endian::U32;

pub(super) const SECTOR_LEN: usize = 512;
pub(super) const LEN_MAX: u64 = 256 << 10;
/// Bytes of data whose cycles are stored in one sector of the header.
pub(super) const HEADER_COVERS: u64 = 32 << 10;
/// Maximum number of records in flight (`XLOG_MAX_ICLOGS`).
pub(super) const FLIGHT_MAX: u64 = 8;
/// Sectors of one read while searching.
const STEP: u64 = 256;
/// Bit of version 4: records of more than 32 KiB.
const LONG_RECORDS: u16 = 0x0400;

pub(super) struct Ring {
    image: Arc<dyn Image>,
    start: u64,
    pub(super) count: u64,
    pub(super) has_long_records: bool,
    pub(super) is_v5: bool,
    /// Identifier of the filesystem in records.
    pub(super) uuid: [u8; 16],
}

impl Ring {
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

    pub(super) fn wrapped(&self, sector: u64) -> u64 {
        sector.remainder(self.count)
    }

    pub(super) fn distance(&self, from: u64, to: u64) -> u64 {
        match to.checked_sub(from) {
            Some(distance) => distance,
            None => to.plus(self.count).minus(from),
        }
    }

    pub(super) fn record_sectors_max(&self) -> u64 {
        if self.has_long_records { LEN_MAX / SECTOR } else { HEADER_COVERS / SECTOR }
    }

    pub(super) fn flight_sectors_max(&self) -> u64 {
        self.record_sectors_max().times(FLIGHT_MAX)
    }

    /// Reads sectors, around the ring; the image must contain them.
    pub(super) fn read(&self, sector: u64, count: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize_of(count.min(self.count).times(SECTOR))];
        let first = self.wrapped(sector);
        let before_end = usize_of(self.count.minus(first).times(SECTOR));
        let len = bytes.len();
        let (head, tail) = bytes.split_at_mut(before_end.min(len));
        self.image.read_exact_at(self.start.plus(first.times(SECTOR)), head)?;
        if !tail.is_empty() {
            self.image.read_exact_at(self.start, tail)?;
        }
        Ok(bytes)
    }

    pub(super) fn cycle(&self, sector: u64) -> Result<u32> {
        Ok(cycle(&self.read(sector, 1)?))
    }

    pub(super) fn find_cycle(&self, range: Range<u64>, wanted: u32) -> Result<Option<u64>> {
        self.find(range, |sector| cycle(sector) == wanted)
    }

    /// Returns the first sector of a range with a record header; the range may wrap around.
    pub(super) fn header_in(&self, range: Range<u64>) -> Result<Option<u64>> {
        self.find(range, is_header)
    }

    fn find(&self, range: Range<u64>, is_wanted: impl Fn(&[u8]) -> bool) -> Result<Option<u64>> {
        let mut at = range.start;
        while at < range.end {
            let bytes = self.read(at, STEP.min(range.end.minus(at)))?;
            let mut sectors = bytes.chunks_exact(SECTOR_LEN);
            if let Some(index) = sectors.position(&is_wanted) {
                return Ok(Some(at.plus(index as u64)));
            }
            at = at.plus(STEP.min(self.count));
        }
        Ok(None)
    }

    /// Returns the last sector of a range with a record header; the range may wrap around.
    pub(super) fn last_header_in(&self, range: Range<u64>) -> Result<Option<u64>> {
        let mut end = range.end;
        while end > range.start {
            let start = left(end, STEP.min(self.count)).max(range.start);
            let bytes = self.read(start, end.minus(start))?;
            let mut sectors = bytes.chunks_exact(SECTOR_LEN);
            if let Some(index) = sectors.rposition(is_header) {
                return Ok(Some(start.plus(index as u64)));
            }
            end = start;
        }
        Ok(None)
    }
}

pub(super) fn is_header(sector: &[u8]) -> bool {
    sector.starts_with(&XLOG_HEADER_MAGIC_NUM.to_be_bytes())
}

/// `sector` is complete: in a record header, the cycle follows the magic.
pub(super) fn cycle(sector: &[u8]) -> u32 {
    let [first, second] = structure::<[U32; 2]>(sector, 0).unwrap_or_default().map(U32::get);
    if first == XLOG_HEADER_MAGIC_NUM { second } else { first }
}

pub(super) fn is_header_of(sector: &[u8], uuid: [u8; 16]) -> bool {
    is_header(sector) && structure(sector, 0).is_some_and(|head: RecHeader| head.h_fs_uuid == uuid)
}

pub(crate) fn is_log_of(image: &dyn Image, super_block: &SuperBlock) -> Result<bool> {
    let mut bytes = vec![0; usize_of(STEP.times(SECTOR).times(4))];
    let len = image.read_at(0, &mut bytes)?;
    let mut sectors = bytes.within(..len).chunks_exact(SECTOR_LEN);
    Ok(sectors.any(|sector| is_header_of(sector, super_block.uuid)))
}

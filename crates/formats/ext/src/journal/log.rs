//! The log: its superblock, the places of its blocks, and its checksums.

use super::MAGIC;
use crate::bytes::{be16, be32, field};
use crate::corruption::{Corruption, READ_WITHOUT};
use crate::reader::Reader;
use crate::run::Run;
use packfs_core::{Error, Image, Result, usize_of};
use packfs_format::crc32c;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Types of superblocks: the first has no features.
const SUPER_V1: u32 = 3;
const SUPER_V2: u32 = 4;
const SUPER_LEN: usize = 1024;
/// Offset of the checksum of the superblock.
const SUPER_SUM_AT: usize = 0xfc;
/// The checksum CRC-32C, by its number.
const CRC32C: u8 = 4;
/// Blocks of fast commits where the superblock names none.
const FAST_BLOCKS: u64 = 256;
/// Most blocks of a log: mke2fs makes logs of at most 10,240,000.
const BLOCKS_MAX: u64 = 1 << 24;
/// Fewest blocks of a log beside them.
const BLOCKS_MIN: u64 = 1024;

pub(super) const BITS_64: u32 = 0x2;
pub(super) const ASYNC_COMMIT: u32 = 0x4;
const SUMS_V2: u32 = 0x8;
pub(super) const SUMS_V3: u32 = 0x10;
pub(super) const FAST_COMMIT: u32 = 0x20;
/// Features of a log that are read.
const READABLE: u32 = 0x1 | BITS_64 | ASYNC_COMMIT | SUMS_V2 | SUMS_V3 | FAST_COMMIT;
/// Compatible feature: commits have checksums of their transactions.
const SUMS_V1: u32 = 0x1;

/// A log, its superblock checked.
pub(super) struct Log {
    pub(super) image: Arc<dyn Image>,
    pub(super) block_len: u64,
    /// Places of the blocks, in order.
    runs: Vec<Run>,
    pub(super) is_external: bool,
    /// First block of the log.
    pub(super) first: u64,
    /// End of the log.
    pub(super) end: u64,
    /// Blocks of fast commits.
    pub(super) fast: std::ops::Range<u64>,
    /// First block with changes that may not be on disk; 0 means none.
    pub(super) start: u64,
    /// Number of the first transaction in the log.
    pub(super) sequence: u32,
    compatible: u32,
    incompatible: u32,
    seed: u32,
}

impl Log {
    /// Reads the superblock of a log in an inode.
    pub(super) fn internal(reader: &Reader, inode: u32) -> Result<Log> {
        let hint = |error: Error| error.hint(READ_WITHOUT);
        let raw = reader.used_inode(u64::from(inode)).map_err(hint)?;
        let block_len = reader.super_block.block_len;
        let count = raw.len(&reader.super_block).checked_div(block_len).unwrap_or(0);
        if count > BLOCKS_MAX {
            let what = "number of blocks";
            return Err(Corruption::JournalFigure { what, found: count, max: BLOCKS_MAX }.into());
        }
        let mut runs = Vec::new();
        let mut next = 0;
        let walked = reader.runs(&raw, 0..count, &mut |run| {
            let goes_on = run.first == next && run.is_written;
            next = run.first.saturating_add(run.count);
            runs.push(run);
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        walked.map_err(hint)?;
        if next < count || count == 0 {
            return Err(Corruption::Journal { fault: "a log with holes" }.into());
        }
        if lie_over_each_other(&runs) {
            return Err(Corruption::Journal { fault: "a log of blocks that lie over each other" }.into());
        }
        Log::open(Arc::clone(&reader.image), block_len, runs, None)
    }

    /// Reads the superblock of a log on a device.
    pub(super) fn external(image: Arc<dyn Image>, block_len: u64, start: u64) -> Result<Log> {
        let count = image.len().checked_div(block_len).unwrap_or(0);
        let run = Run { first: 0, count, block: 0, is_written: true };
        Log::open(image, block_len, vec![run], Some(start))
    }

    /// Reads the superblock: block 0 of a log in an inode. A device has it at `super_at`, and
    /// counts the blocks before it, too.
    fn open(image: Arc<dyn Image>, block_len: u64, runs: Vec<Run>, super_at: Option<u64>) -> Result<Log> {
        let mut log = Log {
            image,
            block_len,
            runs,
            is_external: super_at.is_some(),
            first: 0,
            end: 0,
            fast: 0..0,
            start: 0,
            sequence: 0,
            compatible: 0,
            incompatible: 0,
            seed: 0,
        };
        let block = log.read(super_at.unwrap_or(0))?;
        log.read_super(field(&block, 0, SUPER_LEN))?;
        Ok(log)
    }

    fn read_super(&mut self, raw: &[u8]) -> Result<()> {
        let kind = be32(raw, 4);
        if be32(raw, 0) != MAGIC || !(SUPER_V1..=SUPER_V2).contains(&kind) {
            return Err(Corruption::Journal { fault: "a superblock without its magic number" }.into());
        }
        let limited = |what, found: u32, max: u64| {
            let found = u64::from(found);
            if found <= max { Ok(found) } else { Err(Corruption::JournalFigure { what, found, max }) }
        };
        if u64::from(be32(raw, 0x0c)) != self.block_len {
            return Err(Corruption::Journal { fault: "blocks of another size than the filesystem's" }.into());
        }
        let blocks = self.runs.last().map_or(0, |run| run.first.saturating_add(run.count));
        let len = limited("number of blocks", be32(raw, 0x10), blocks.min(BLOCKS_MAX))?;
        let first = limited("first block", be32(raw, 0x14), len.saturating_sub(1))?;
        if first == 0 {
            return Err(Corruption::Journal { fault: "a log that begins with its superblock" }.into());
        }
        (self.first, self.end, self.fast) = (first, len, len..len);
        self.sequence = be32(raw, 0x18);
        if kind == SUPER_V2 {
            (self.compatible, self.incompatible) = (be32(raw, 0x24), be32(raw, 0x28));
        }
        self.check_features(raw)?;
        if self.has(FAST_COMMIT) {
            let count = match be32(raw, 0x54) {
                0 => FAST_BLOCKS,
                count => u64::from(count),
            };
            if let Some(end) = len.checked_sub(count).filter(|end| *end >= BLOCKS_MIN.max(first)) {
                (self.end, self.fast) = (end, end.saturating_add(1)..len);
            }
        }
        self.start = limited("start", be32(raw, 0x1c), self.end.saturating_sub(1))?;
        if self.start != 0 && self.start < first {
            return Err(Corruption::Journal { fault: "a start before its first block" }.into());
        }
        Ok(())
    }

    fn check_features(&mut self, raw: &[u8]) -> Result<()> {
        let unknown = self.incompatible & !READABLE;
        if unknown != 0 {
            let fault = format_args!("feature {unknown:#x} of the journal");
            return Err(Error::unsupported("ext4 image", fault).hint(READ_WITHOUT));
        }
        if !self.has_sums() {
            return Ok(());
        }
        if raw.get(0x50) != Some(&CRC32C) || self.has(SUMS_V2) && self.has(SUMS_V3) {
            return Err(Corruption::Journal { fault: "checksums of an unknown kind" }.into());
        }
        let sum = crc32c(crc32c(!0, field(raw, 0, SUPER_SUM_AT)), &[0; 4]);
        let behind = raw.get(SUPER_SUM_AT.saturating_add(4)..).unwrap_or_default();
        if crc32c(sum, behind) != be32(raw, SUPER_SUM_AT) {
            return Err(Corruption::JournalSum { block: 0, what: "superblock" }.into());
        }
        self.seed = crc32c(!0, field(raw, 0x30, 16));
        Ok(())
    }

    pub(super) fn has(&self, feature: u32) -> bool {
        self.incompatible & feature != 0
    }

    /// Returns true if its blocks have checksums of version 2 or 3.
    pub(super) fn has_sums(&self) -> bool {
        self.has(SUMS_V2) || self.has(SUMS_V3)
    }

    /// Returns true if commits have checksums of their transactions.
    pub(super) fn has_old_sums(&self) -> bool {
        self.compatible & SUMS_V1 != 0
    }

    /// Returns the bytes of a tag of a descriptor.
    pub(super) fn tag_len(&self) -> usize {
        if self.has(SUMS_V3) {
            return 16;
        }
        let high = if self.has(BITS_64) { 4 } else { 0 };
        let sum = if self.has(SUMS_V2) { 2 } else { 0 };
        usize::saturating_add(8, usize::saturating_add(high, sum))
    }

    /// Returns the offset of a block in its image.
    pub(super) fn offset(&self, block: u64) -> Result<u64> {
        let index = self.runs.partition_point(|run| run.first <= block).checked_sub(1);
        let run = index.and_then(|index| self.runs.get(index));
        let place = run.and_then(|run| {
            let within = block.saturating_sub(run.first);
            (within < run.count).then(|| run.block.saturating_add(within))
        });
        let place = place.ok_or(Corruption::Journal { fault: "a block outside of the log" })?;
        Ok(place.saturating_mul(self.block_len))
    }

    /// Reads a block.
    pub(super) fn read(&self, block: u64) -> Result<Box<[u8]>> {
        let mut bytes = vec![0; usize_of(self.block_len)].into_boxed_slice();
        self.image.read_exact_at(self.offset(block)?, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads the beginning of a block, which says what it is.
    pub(super) fn head(&self, block: u64) -> Result<[u8; 12]> {
        let mut bytes = [0; 12];
        self.image.read_exact_at(self.offset(block)?, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns the block after one, which is the first one after the last.
    pub(super) fn next(&self, block: u64) -> u64 {
        match block.saturating_add(1) {
            next if next >= self.end => self.first,
            next => next,
        }
    }

    /// Returns true if a block of the log that has a checksum at an offset is right.
    pub(super) fn is_block_right(&self, bytes: &[u8], sum_at: usize) -> bool {
        let sum = crc32c(crc32c(self.seed, field(bytes, 0, sum_at)), &[0; 4]);
        let behind = bytes.get(sum_at.saturating_add(4)..).unwrap_or_default();
        !self.has_sums() || crc32c(sum, behind) == be32(bytes, sum_at)
    }

    /// Returns true if data have the checksum of their tag.
    pub(super) fn is_sum_of(&self, stored: u32, sequence: u32, bytes: &[u8]) -> bool {
        if !self.has_sums() {
            return true;
        }
        let sum = crc32c(crc32c(self.seed, &sequence.to_be_bytes()), bytes);
        stored == if self.has(SUMS_V3) { sum } else { sum & 0xffff }
    }

    /// Returns the checksum of a tag.
    pub(super) fn tag_sum(&self, tag: &[u8]) -> u32 {
        if self.has(SUMS_V3) { be32(tag, 12) } else { u32::from(be16(tag, 4)) }
    }
}

/// Returns true if blocks are places of several blocks of the log: few of them could be many then.
fn lie_over_each_other(runs: &[Run]) -> bool {
    let mut places: Vec<_> = runs.iter().map(|run| packfs_core::range_at(run.block, run.count)).collect();
    places.sort_unstable_by_key(|place| place.start);
    !places.is_sorted_by(|place, next| place.end <= next.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_one_place_of_a_log() {
        let run = |first, block| Run { first, count: 10, block, is_written: true };
        assert!(!lie_over_each_other(&[run(0, 100), run(10, 50), run(20, 110)]));
        assert!(lie_over_each_other(&[run(0, 100), run(10, 50), run(20, 109)]));
        assert!(lie_over_each_other(&[run(0, 100), run(10, 100)]));
    }
}

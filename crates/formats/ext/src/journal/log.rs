//! The log: superblock, positions of its blocks, and checksums.

use super::MAGIC;
use crate::bytes::joined;
use crate::corruption::{Corruption, READ_WITHOUT};
use crate::disk::journal::{BlockTag, BlockTag3, JournalHeader, JournalSuper};
use crate::reader::Reader;
use crate::run::Run;
use packfs_core::{Error, Image, Result, usize_of};
use packfs_format::{crc32c, read_structure, structure, units::*};
use std::mem::offset_of;
use std::ops::ControlFlow;
use std::sync::Arc;
use zerocopy::IntoBytes;
use zerocopy::big_endian::U32;

/// Types of superblocks: version 1 has no features.
const SUPER_V1: u32 = 3;
const SUPER_V2: u32 = 4;
/// Value of `s_checksum_type`.
const CRC32C: u8 = 4;
/// Default of `s_num_fc_blks`.
const FAST_BLOCKS: u64 = 256;
/// Limit of the blocks of a log; mke2fs creates at most 10,240,000.
const BLOCKS_MAX: u64 = 1 << 24;
const BLOCKS_MIN: u64 = 1024;

pub(super) const BITS_64: u32 = 0x2;
pub(super) const ASYNC_COMMIT: u32 = 0x4;
const SUMS_V2: u32 = 0x8;
pub(super) const SUMS_V3: u32 = 0x10;
pub(super) const FAST_COMMIT: u32 = 0x20;
/// Supported features.
const READABLE: u32 = 0x1 | BITS_64 | ASYNC_COMMIT | SUMS_V2 | SUMS_V3 | FAST_COMMIT;
/// Compatible feature: commits contain checksums of transactions.
const SUMS_V1: u32 = 0x1;

pub(super) struct Log {
    pub(super) image: Arc<dyn Image>,
    pub(super) block_len: u64,
    runs: Vec<Run>,
    pub(super) is_external: bool,
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) fast: std::ops::Range<u64>,
    /// First block with changes that may not be on disk; 0 if there are none.
    pub(super) start: u64,
    /// Number of the first transaction.
    pub(super) sequence: u32,
    compatible: u32,
    incompatible: u32,
    seed: u32,
}

impl Log {
    pub(super) fn internal(reader: &Reader, inode: u32) -> Result<Log> {
        let hint = |error: Error| error.hint(READ_WITHOUT);
        let raw = reader.used_inode(u64::from(inode)).map_err(hint)?;
        let block_len = reader.super_block.block_len;
        let count = raw.len(&reader.super_block).quotient(block_len);
        if count > BLOCKS_MAX {
            let max = BLOCKS_MAX;
            return Err(Corruption::JournalFigure { what: "number of blocks", found: count, max }.into());
        }
        let mut runs = Vec::new();
        let mut next = 0;
        let walked = reader.runs(&raw, 0..count, &mut |run| {
            let goes_on = run.first == next && run.is_written;
            next = run.first.plus(run.count);
            runs.push(run);
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        walked.map_err(hint)?;
        if next < count || count == 0 {
            return Err(Corruption::Journal { fault: "a log with holes" }.into());
        }
        if lie_over_each_other(&runs) {
            return Err(Corruption::Journal { fault: "a log of overlapping blocks" }.into());
        }
        Log::open(Arc::clone(&reader.image), block_len, runs, None)
    }

    pub(super) fn external(image: Arc<dyn Image>, block_len: u64, start: u64) -> Result<Log> {
        let count = image.len().quotient(block_len);
        let run = Run { first: 0, count, block: 0, is_written: true };
        Log::open(image, block_len, vec![run], Some(start))
    }

    /// Reads the superblock: block 0 of a log in an inode. On a device it is at `super_at`, and
    /// block numbers include the blocks before it.
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
        let raw: Option<JournalSuper> = structure(&block, 0);
        log.read_super(&raw.ok_or(Corruption::Journal { fault: "a superblock that is too short" })?)?;
        Ok(log)
    }

    fn read_super(&mut self, raw: &JournalSuper) -> Result<()> {
        let kind = raw.s_header.h_blocktype.get();
        if raw.s_header.h_magic.get() != MAGIC || !(SUPER_V1..=SUPER_V2).contains(&kind) {
            return Err(Corruption::Journal { fault: "a superblock without its magic number" }.into());
        }
        let limited = |what, found: U32, max: u64| {
            let found = u64::from(found.get());
            if found <= max { Ok(found) } else { Err(Corruption::JournalFigure { what, found, max }) }
        };
        if u64::from(raw.s_blocksize.get()) != self.block_len {
            return Err(Corruption::Journal { fault: "blocks of another size than the filesystem's" }.into());
        }
        let blocks = self.runs.last().map_or(0, |run| run.first.plus(run.count));
        let len = limited("number of blocks", raw.s_maxlen, blocks.min(BLOCKS_MAX))?;
        let first = limited("first block", raw.s_first, left(len, 1))?;
        if first == 0 {
            return Err(Corruption::Journal { fault: "a log that begins with its superblock" }.into());
        }
        (self.first, self.end, self.fast) = (first, len, len..len);
        self.sequence = raw.s_sequence.get();
        if kind == SUPER_V2 {
            (self.compatible, self.incompatible) = (raw.s_feature_compat.get(), raw.s_feature_incompat.get());
        }
        self.check_features(raw)?;
        if self.has(FAST_COMMIT) {
            let count = match raw.s_num_fc_blks.get() {
                0 => FAST_BLOCKS,
                count => u64::from(count),
            };
            if let Some(end) = len.checked_sub(count).filter(|end| *end >= BLOCKS_MIN.max(first)) {
                (self.end, self.fast) = (end, end.plus(1)..len);
            }
        }
        self.start = limited("start", raw.s_start, self.end.minus(1))?;
        if self.start != 0 && self.start < first {
            return Err(Corruption::Journal { fault: "a start before its first block" }.into());
        }
        Ok(())
    }

    fn check_features(&mut self, raw: &JournalSuper) -> Result<()> {
        let unknown = self.incompatible & !READABLE;
        if unknown != 0 {
            let fault = format_args!("feature {unknown:#x} of the journal");
            return Err(Error::unsupported("ext4 image", fault).hint(READ_WITHOUT));
        }
        if !self.has_sums() {
            return Ok(());
        }
        if raw.s_checksum_type != CRC32C || self.has(SUMS_V2) && self.has(SUMS_V3) {
            return Err(Corruption::Journal { fault: "checksums of an unknown kind" }.into());
        }
        let without_sum = JournalSuper { s_checksum: U32::ZERO, ..*raw };
        if crc32c(!0, without_sum.as_bytes()) != raw.s_checksum.get() {
            return Err(Corruption::JournalSum { block: 0, what: "superblock" }.into());
        }
        self.seed = crc32c(!0, &raw.s_uuid);
        Ok(())
    }

    pub(super) fn has(&self, feature: u32) -> bool {
        self.incompatible & feature != 0
    }

    /// True if blocks have checksums of version 2 or 3.
    pub(super) fn has_sums(&self) -> bool {
        self.has(SUMS_V2) || self.has(SUMS_V3)
    }

    /// True if commits contain checksums of transactions.
    pub(super) fn has_old_sums(&self) -> bool {
        self.compatible & SUMS_V1 != 0
    }

    pub(super) fn tag_len(&self) -> usize {
        if self.has(SUMS_V3) {
            return size_of::<BlockTag3>();
        }
        let high = if self.has(BITS_64) { size_of::<U32>() } else { 0 };
        let sum = if self.has(SUMS_V2) { 2 } else { 0 };
        offset_of!(BlockTag, t_blocknr_high).plus(high).plus(sum)
    }

    pub(super) fn offset(&self, block: u64) -> Result<u64> {
        let index = self.runs.partition_point(|run| run.first <= block).checked_sub(1);
        let run = index.and_then(|index| self.runs.get(index));
        let place = run.and_then(|run| {
            let within = block.minus(run.first);
            (within < run.count).then(|| run.block.plus(within))
        });
        let place = place.ok_or(Corruption::Journal { fault: "a block outside of the log" })?;
        Ok(place.times(self.block_len))
    }

    pub(super) fn read(&self, block: u64) -> Result<Box<[u8]>> {
        let mut bytes = vec![0; usize_of(self.block_len)].into_boxed_slice();
        self.image.read_exact_at(self.offset(block)?, &mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn head(&self, block: u64) -> Result<JournalHeader> {
        read_structure(&*self.image, self.offset(block)?)
    }

    /// Returns the next block; wraps around at the end.
    pub(super) fn next(&self, block: u64) -> u64 {
        match block.plus(1) {
            next if next >= self.end => self.first,
            next => next,
        }
    }

    /// True if the checksum at an offset of a log block is right.
    pub(super) fn is_block_right(&self, bytes: &[u8], sum_at: usize) -> bool {
        let sum = crc32c(crc32c(self.seed, bytes.within(..sum_at)), &[0; 4]);
        let behind = bytes.within(sum_at.plus(4)..);
        !self.has_sums() || Some(crc32c(sum, behind)) == structure(bytes, sum_at).map(U32::get)
    }

    /// True if data match the checksum of their tag.
    pub(super) fn is_sum_of(&self, stored: u32, sequence: u32, bytes: &[u8]) -> bool {
        if !self.has_sums() {
            return true;
        }
        let sum = crc32c(crc32c(self.seed, &sequence.to_be_bytes()), bytes);
        stored == if self.has(SUMS_V3) { sum } else { sum & 0xffff }
    }

    /// Returns block number, flags, and checksum of a tag.
    pub(super) fn tag(&self, tag: &[u8]) -> Option<(u64, u32, u32)> {
        let high = |high: U32| if self.has(BITS_64) { high } else { U32::ZERO };
        if self.has(SUMS_V3) {
            let raw: BlockTag3 = structure(tag, 0)?;
            return Some((
                joined(raw.t_blocknr, high(raw.t_blocknr_high)),
                raw.t_flags.get(),
                raw.t_checksum.get(),
            ));
        }
        // Short tags lack the high half of the block number.
        let mut long = tag.to_vec();
        long.resize(long.len().max(size_of::<BlockTag>()), 0);
        let raw: BlockTag = structure(&long, 0)?;
        Some((
            joined(raw.t_blocknr, high(raw.t_blocknr_high)),
            raw.t_flags.get().into(),
            raw.t_checksum.get().into(),
        ))
    }
}

/// True if runs overlap: a few blocks could then be read as many.
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

//! Complete transactions of a log, in order.
//!
//! Invariant: no more blocks are read than the log has.

use super::MAGIC;
use super::log::{ASYNC_COMMIT, BITS_64, Log};
use crate::corruption::Corruption;
use crate::disk::journal::{CommitHeader, JournalHeader, RevokeHeader};
use packfs_core::Result;
use packfs_format::{OnDisk, structure, structures, units::*};
use std::array;
use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::LazyLock;
use zerocopy::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

const DESCRIPTOR: u32 = 1;
const COMMIT: u32 = 2;
const REVOKE: u32 = 5;
const KINDS: [u32; 3] = [DESCRIPTOR, COMMIT, REVOKE];
/// Bytes of the log that are searched after its end; a transaction takes at most a third of it.
const REST_MAX: u64 = 64 << 20;
const HEAD_LEN: usize = size_of::<JournalHeader>();
/// Length of the checksum at the end of a descriptor.
const TAIL_LEN: usize = 4;
const COMMIT_SUM_AT: usize = offset_of!(CommitHeader, h_chksum);
const ESCAPED: u32 = 1;
const SAME_UUID: u32 = 2;
const LAST: u32 = 8;
/// Value of `h_chksum_type`.
const CRC32: u8 = 1;

/// A filesystem block in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    pub(super) sequence: u32,
    /// Number in the filesystem.
    pub(super) target: u64,
    /// Number in the log.
    pub(super) block: u64,
    /// Set if the block starts with the journal's magic, which is stored as zeros.
    pub(super) is_escaped: bool,
    pub(super) sum: u32,
}

pub(super) struct Found {
    pub(super) transactions: u64,
    /// Number after the last transaction.
    pub(super) next_sequence: u32,
    /// Last contents of each block; earlier ones are overwritten, or revoked along with it.
    pub(super) data: HashMap<u64, Data>,
    /// Revoke blocks and their transactions.
    revokes: Vec<(u64, u32)>,
}

/// Compares sequence numbers, which wrap around.
pub(super) fn is_after(sequence: u32, other: u32) -> bool {
    sequence.wrapping_sub(other).cast_signed() > 0
}

const CUT: Corruption = Corruption::Journal { fault: "a block that is too short" };

fn read<T: OnDisk + FromBytes + KnownLayout + Immutable + Unaligned>(bytes: &[u8]) -> Result<T, Corruption> {
    structure(bytes, 0).ok_or(CUT)
}

struct Scan<'l> {
    log: &'l Log,
    found: Found,
    /// Blocks of the current transaction, which may be incomplete.
    data: Vec<Data>,
    /// Remaining budget of blocks.
    left: u64,
    /// Checksum of version 1 of the transaction.
    sum: u32,
    /// Set if a block of the transaction has a wrong checksum: it may belong to an older log.
    is_doubtful: bool,
    /// Set once a descriptor of the transaction has a right checksum: it belongs to this log.
    is_own: bool,
    /// Block after the last complete transaction.
    first: u64,
    last_commit_time: u64,
}

pub(super) fn scan(log: &Log, made_at: u64) -> Result<Found> {
    let (data, revokes) = (HashMap::new(), Vec::new());
    let found = Found { transactions: 0, next_sequence: log.sequence, data, revokes };
    let mut scan = Scan {
        log,
        found,
        data: Vec::new(),
        left: log.end.minus(log.first),
        sum: !0,
        is_doubtful: false,
        is_own: false,
        first: log.start,
        // Commits of an earlier filesystem are older.
        last_commit_time: made_at,
    };
    scan.go()?;
    scan.refuse_rest()?;
    Ok(scan.found)
}

impl Scan<'_> {
    fn go(&mut self) -> Result<()> {
        let mut at = self.log.start;
        // Revoke blocks of complete transactions.
        let mut revokes_len = 0;
        while self.spend(1) {
            let bytes = self.log.read(at)?;
            let block = at;
            at = self.log.next(at);
            let head: JournalHeader = read(&bytes)?;
            if head.h_magic.get() != MAGIC || head.h_sequence.get() != self.found.next_sequence {
                self.refuse_damaged(&bytes, block)?;
                break;
            }
            match head.h_blocktype.get() {
                DESCRIPTOR => {
                    let is_right = self.is_tail_right(&bytes);
                    self.is_doubtful |= !is_right;
                    self.is_own |= is_right && self.log.has_sums();
                    let Some(next) = self.descriptor(&bytes, at)? else { break };
                    at = next;
                }
                REVOKE => {
                    self.is_doubtful |= !self.is_tail_right(&bytes);
                    self.found.revokes.push((block, self.found.next_sequence));
                }
                COMMIT => {
                    if !self.commit(&bytes, block)? {
                        break;
                    }
                    self.found.data.extend(self.data.drain(..).map(|data| (data.target, data)));
                    revokes_len = self.found.revokes.len();
                    self.found.transactions = self.found.transactions.plus(1);
                    self.found.next_sequence = self.found.next_sequence.wrapping_add(1);
                    (self.first, self.is_own) = (at, false);
                }
                _ => {
                    self.refuse_damaged(&bytes, block)?;
                    break;
                }
            }
        }
        self.found.revokes.truncate(revokes_len);
        Ok(())
    }

    /// Refuses a block that would be the next one except for one field of its header.
    fn refuse_damaged(&self, bytes: &[u8], block: u64) -> Result<()> {
        let wanted = self.found.next_sequence;
        let head: JournalHeader = read(bytes)?;
        let [magic, kind, sequence] =
            [head.h_magic, head.h_blocktype, head.h_sequence].map(|figure| figure.get());
        let is_kind = KINDS.contains(&kind);
        let mut is_next = sequence == wanted && (magic == MAGIC) != is_kind;
        if self.log.has_sums() {
            let mut whole: Box<[u8]> = bytes.into();
            is_next = KINDS.iter().any(|kind| {
                for (at, word) in [(0, MAGIC), (4, *kind), (8, wanted)] {
                    crate::bytes::put(&mut whole, at, &word.to_be_bytes());
                }
                self.is_sum_right(&whole, *kind)
            });
        }
        if is_next {
            Err(Corruption::JournalBlock { block, magic, kind, sequence, wanted }.into())
        } else {
            Ok(())
        }
    }

    fn is_sum_right(&self, bytes: &[u8], kind: u32) -> bool {
        match kind {
            COMMIT => self.log.is_block_right(bytes, COMMIT_SUM_AT),
            _ => self.is_tail_right(bytes),
        }
    }

    /// Refuses a log with a commit after its end: Linux writes a commit once everything before it
    /// is on disk, so a block in between is damaged.
    fn refuse_rest(&self) -> Result<()> {
        let is_ordered = !self.log.has(ASYNC_COMMIT);
        let log_len = self.log.end.minus(self.log.first);
        let mut block = self.first;
        for _ in 0..log_len.min(REST_MAX.quotient(self.log.block_len)) {
            let head = self.log.head(block)?;
            let ahead = head.h_sequence.get().wrapping_sub(self.found.next_sequence);
            let is_commit = head.h_magic.get() == MAGIC && head.h_blocktype.get() == COMMIT;
            if is_commit && (ahead == 1 || ahead == 0 && is_ordered) && self.is_commit_of_log(block)? {
                let missing = self.found.next_sequence;
                return Err(Corruption::JournalRest { missing, block }.into());
            }
            block = self.log.next(block);
        }
        Ok(())
    }

    /// True for a commit that is not of an earlier filesystem.
    fn is_commit_of_log(&self, block: u64) -> Result<bool> {
        let bytes = self.log.read(block)?;
        let is_newer = read::<CommitHeader>(&bytes)?.h_commit_sec.get() >= self.last_commit_time;
        Ok(self.is_sum_right(&bytes, COMMIT) && (is_newer || self.log.has_sums()))
    }

    fn spend(&mut self, count: u64) -> bool {
        let left = self.left.checked_sub(count);
        self.left = left.unwrap_or(0);
        left.is_some()
    }

    fn is_tail_right(&self, bytes: &[u8]) -> bool {
        self.log.is_block_right(bytes, bytes.len().minus(TAIL_LEN))
    }

    /// Collects the data blocks of a descriptor; returns the block after them.
    fn descriptor(&mut self, bytes: &[u8], mut at: u64) -> Result<Option<u64>> {
        let tail_len = if self.log.has_sums() { TAIL_LEN } else { 0 };
        let end = bytes.len().minus(tail_len);
        let tag_len = self.log.tag_len();
        let has_old_sums = self.log.has_old_sums();
        if has_old_sums {
            self.sum = crc32_be(self.sum, bytes);
        }
        let mut tag_at = HEAD_LEN;
        loop {
            let tag_end = tag_at.plus(tag_len);
            let Some(tag) = bytes.get(tag_at..tag_end).filter(|_| tag_end <= end) else { break };
            let (target, flags, sum) = self.log.tag(tag).ok_or(CUT)?;
            if !self.spend(1) {
                return Ok(None);
            }
            self.data.push(Data {
                sequence: self.found.next_sequence,
                target,
                block: at,
                is_escaped: flags & ESCAPED != 0,
                sum,
            });
            if has_old_sums {
                self.sum = crc32_be(self.sum, &self.log.read(at)?);
            }
            at = self.log.next(at);
            tag_at = if flags & SAME_UUID != 0 { tag_end } else { tag_end.plus(16) };
            if flags & LAST != 0 {
                break;
            }
        }
        Ok(Some(at))
    }

    /// Reads a commit; false if the log ends before it.
    fn commit(&mut self, bytes: &[u8], block: u64) -> Result<bool> {
        let raw: CommitHeader = read(bytes)?;
        let time = raw.h_commit_sec.get();
        // Blocks of an older log that were never overwritten have older times.
        let is_older = time < self.last_commit_time;
        let is_old_sum_right = !self.log.has_old_sums() || self.is_old_sum_right(&raw);
        let is_right = is_old_sum_right && self.log.is_block_right(bytes, COMMIT_SUM_AT);
        if self.is_doubtful || !is_right {
            let is_stale = is_older && (self.is_doubtful || !self.is_own);
            if is_stale || (!self.is_doubtful && self.log.has(ASYNC_COMMIT)) {
                return Ok(false);
            }
            return Err(Corruption::JournalSum { block, what: "a transaction" }.into());
        }
        self.sum = !0;
        self.last_commit_time = time;
        Ok(true)
    }

    fn is_old_sum_right(&self, raw: &CommitHeader) -> bool {
        let (kind, len) = (raw.h_chksum_type, raw.h_chksum_size);
        let [found, ..] = raw.h_chksum.map(U32::get);
        let is_unused = kind == 0 && len == 0 && found == 0;
        is_unused || kind == CRC32 && len == 4 && found == self.sum
    }
}

/// Returns revoked blocks that are in the log, with the last transaction that revokes them.
pub(super) fn revoked(log: &Log, found: &Found) -> Result<HashMap<u64, u32>> {
    let mut revoked = HashMap::new();
    for (block, sequence) in &found.revokes {
        let bytes = log.read(*block)?;
        let tail_len = if log.has_sums() { TAIL_LEN } else { 0 };
        let end = packfs_core::usize_of(u64::from(read::<RevokeHeader>(&bytes)?.r_count.get()));
        let records = bytes.get(size_of::<RevokeHeader>()..end);
        let Some(records) = records.filter(|_| end <= bytes.len().minus(tail_len)) else {
            let fault = "a list of revoked blocks whose length is not one within its block";
            return Err(Corruption::Journal { fault }.into());
        };
        let targets: Vec<u64> = if log.has(BITS_64) {
            structures(records).map(U64::get).collect()
        } else {
            structures(records).map(|target: U32| target.get().into()).collect()
        };
        for target in targets {
            if found.data.contains_key(&target) {
                let last = revoked.entry(target).or_insert(*sequence);
                if is_after(*sequence, *last) {
                    *last = *sequence;
                }
            }
        }
    }
    Ok(revoked)
}

static CRC32_TABLE: LazyLock<[u32; 256]> = LazyLock::new(|| {
    array::from_fn(|byte| {
        (0..8).fold(u32::from(byte.to_le_bytes()[0]) << 24, |sum, _| {
            if sum & 0x8000_0000 == 0 { sum << 1 } else { sum << 1 ^ 0x04c1_1db7 }
        })
    })
});

/// CRC-32 with the most significant bit first, as Linux's `crc32_be()`.
fn crc32_be(seed: u32, bytes: &[u8]) -> u32 {
    let table = &*CRC32_TABLE;
    bytes.iter().fold(seed, |sum, byte| {
        let [high, ..] = sum.to_be_bytes();
        let row = table.get(usize::from(high ^ byte)).copied().unwrap_or(0);
        sum << 8 ^ row
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_check_value_of_the_catalogue() {
        // CRC-32/MPEG-2.
        assert_eq!(crc32_be(!0, b"123456789"), 0x0376_e6e7);
    }

    #[test]
    fn numbers_of_transactions_wrap() {
        assert!(is_after(0, u32::MAX) && !is_after(u32::MAX, 0) && !is_after(7, 7));
    }
}

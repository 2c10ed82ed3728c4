//! Transactions of a log that are complete, in order.
//!
//! Invariant: no more blocks are looked at than the log has.

use super::MAGIC;
use super::log::{ASYNC_COMMIT, BITS_64, Log, SUMS_V3};
use crate::bytes::{be16, be32, be64, joined, u8_at};
use crate::corruption::Corruption;
use packfs_core::Result;
use std::array;
use std::collections::HashMap;
use std::sync::LazyLock;

const DESCRIPTOR: u32 = 1;
const COMMIT: u32 = 2;
const REVOKE: u32 = 5;
const KINDS: [u32; 3] = [DESCRIPTOR, COMMIT, REVOKE];
/// Bytes of the log behind its end that are looked at; transactions take a third of it at most.
const REST_MAX: u64 = 64 << 20;
/// Bytes of the header of a block.
const HEAD_LEN: usize = 12;
/// Bytes of the checksum at the end of a descriptor.
const TAIL_LEN: usize = 4;
/// Offset of the checksum of a commit.
const COMMIT_SUM_AT: usize = 16;
const ESCAPED: u32 = 1;
const SAME_UUID: u32 = 2;
const LAST: u32 = 8;
/// CRC-32, by its number in a commit.
const CRC32: u8 = 1;

/// A block of the filesystem in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    pub(super) sequence: u32,
    /// Block of the filesystem.
    pub(super) target: u64,
    /// Block of the log.
    pub(super) block: u64,
    /// Set if its first bytes were those of a block that describes others, and are zeros.
    pub(super) is_escaped: bool,
    pub(super) sum: u32,
}

/// The contents of complete transactions.
pub(super) struct Found {
    pub(super) transactions: u64,
    /// Number of the transaction after the last one.
    pub(super) next_sequence: u32,
    /// Last contents of each block: those before it are overwritten, or revoked with it.
    pub(super) data: HashMap<u64, Data>,
    /// Blocks that list revoked blocks, and their transactions.
    revokes: Vec<(u64, u32)>,
}

/// Returns true if a transaction comes after another; numbers wrap.
pub(super) fn is_after(sequence: u32, other: u32) -> bool {
    sequence.wrapping_sub(other).cast_signed() > 0
}

struct Scan<'l> {
    log: &'l Log,
    found: Found,
    /// Blocks of the transaction, which may not be complete.
    data: Vec<Data>,
    /// Blocks that are not yet looked at.
    left: u64,
    /// Old checksum of the transaction.
    sum: u32,
    /// Set if a block of the transaction has a wrong checksum: it may be of an older log.
    is_doubtful: bool,
    /// Set once a descriptor of the transaction has a right checksum: it is of this log.
    is_own: bool,
    /// Block after the last complete transaction.
    first: u64,
    last_commit_time: u64,
}

/// Finds the transactions.
pub(super) fn scan(log: &Log, made_at: u64) -> Result<Found> {
    let (data, revokes) = (HashMap::new(), Vec::new());
    let found = Found { transactions: 0, next_sequence: log.sequence, data, revokes };
    let mut scan = Scan {
        log,
        found,
        data: Vec::new(),
        left: log.end.saturating_sub(log.first),
        sum: !0,
        is_doubtful: false,
        is_own: false,
        first: log.start,
        // Commits of a filesystem that was there before are older.
        last_commit_time: made_at,
    };
    scan.go()?;
    scan.refuse_rest()?;
    Ok(scan.found)
}

impl Scan<'_> {
    fn go(&mut self) -> Result<()> {
        let mut at = self.log.start;
        // Those that belong to complete transactions.
        let mut revokes_len = 0;
        while self.spend(1) {
            let bytes = self.log.read(at)?;
            let block = at;
            at = self.log.next(at);
            if be32(&bytes, 0) != MAGIC || be32(&bytes, 8) != self.found.next_sequence {
                self.refuse_damaged(&bytes, block)?;
                break;
            }
            match be32(&bytes, 4) {
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
                    self.found.transactions = self.found.transactions.saturating_add(1);
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

    /// Refuses a block that is the next one but for one word of its header.
    fn refuse_damaged(&self, bytes: &[u8], block: u64) -> Result<()> {
        let wanted = self.found.next_sequence;
        let (magic, kind, sequence) = (be32(bytes, 0), be32(bytes, 4), be32(bytes, 8));
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
        match is_next {
            true => Err(Corruption::JournalBlock { block, magic, kind, sequence, wanted }.into()),
            false => Ok(()),
        }
    }

    fn is_sum_right(&self, bytes: &[u8], kind: u32) -> bool {
        match kind {
            COMMIT => self.log.is_block_right(bytes, COMMIT_SUM_AT),
            _ => self.is_tail_right(bytes),
        }
    }

    /// Refuses a log with a commit behind its end: Linux writes one once all before it is on disk,
    /// so that a block between them is damaged.
    fn refuse_rest(&self) -> Result<()> {
        let is_ordered = !self.log.has(ASYNC_COMMIT);
        let log_len = self.log.end.saturating_sub(self.log.first);
        let mut block = self.first;
        for _ in 0..log_len.min(REST_MAX.checked_div(self.log.block_len).unwrap_or(0)) {
            let bytes = self.log.head(block)?;
            let ahead = be32(&bytes, 8).wrapping_sub(self.found.next_sequence);
            let is_commit = be32(&bytes, 0) == MAGIC && be32(&bytes, 4) == COMMIT;
            if is_commit && (ahead == 1 || ahead == 0 && is_ordered) && self.is_commit_of_log(block)? {
                let missing = self.found.next_sequence;
                return Err(Corruption::JournalRest { missing, block }.into());
            }
            block = self.log.next(block);
        }
        Ok(())
    }

    /// Returns true for a commit that is not of a filesystem that was there before.
    fn is_commit_of_log(&self, block: u64) -> Result<bool> {
        let bytes = self.log.read(block)?;
        let is_newer = be64(&bytes, 0x30) >= self.last_commit_time;
        Ok(self.is_sum_right(&bytes, COMMIT) && (is_newer || self.log.has_sums()))
    }

    fn spend(&mut self, count: u64) -> bool {
        let left = self.left.checked_sub(count);
        self.left = left.unwrap_or(0);
        left.is_some()
    }

    fn is_tail_right(&self, bytes: &[u8]) -> bool {
        self.log.is_block_right(bytes, bytes.len().saturating_sub(TAIL_LEN))
    }

    /// Takes the data that a descriptor lists, which follow it; returns the block behind them.
    fn descriptor(&mut self, bytes: &[u8], mut at: u64) -> Result<Option<u64>> {
        let tail_len = if self.log.has_sums() { TAIL_LEN } else { 0 };
        let end = bytes.len().saturating_sub(tail_len);
        let tag_len = self.log.tag_len();
        let has_old_sums = self.log.has_old_sums();
        if has_old_sums {
            self.sum = crc32_be(self.sum, bytes);
        }
        let mut tag_at = HEAD_LEN;
        loop {
            let tag_end = tag_at.saturating_add(tag_len);
            let Some(tag) = bytes.get(tag_at..tag_end).filter(|_| tag_end <= end) else { break };
            let flags = match self.log.has(SUMS_V3) {
                true => be32(tag, 4),
                false => u32::from(be16(tag, 6)),
            };
            let high = if self.log.has(BITS_64) { be32(tag, 8) } else { 0 };
            if !self.spend(1) {
                return Ok(None);
            }
            self.data.push(Data {
                sequence: self.found.next_sequence,
                target: joined(be32(tag, 0), high),
                block: at,
                is_escaped: flags & ESCAPED != 0,
                sum: self.log.tag_sum(tag),
            });
            if has_old_sums {
                self.sum = crc32_be(self.sum, &self.log.read(at)?);
            }
            at = self.log.next(at);
            tag_at = if flags & SAME_UUID != 0 { tag_end } else { tag_end.saturating_add(16) };
            if flags & LAST != 0 {
                break;
            }
        }
        Ok(Some(at))
    }

    /// Looks at a commit. Returns false if the log ends before it.
    fn commit(&mut self, bytes: &[u8], block: u64) -> Result<bool> {
        let time = be64(bytes, 0x30);
        // Blocks of an older log that were never overwritten have older times.
        let is_older = time < self.last_commit_time;
        let is_old_sum_right = !self.log.has_old_sums() || self.is_old_sum_right(bytes);
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

    fn is_old_sum_right(&self, bytes: &[u8]) -> bool {
        let [kind, len] = [12, 13].map(|at| u8_at(bytes, at));
        let found = be32(bytes, COMMIT_SUM_AT);
        let is_unused = kind == 0 && len == 0 && found == 0;
        is_unused || kind == CRC32 && len == 4 && found == self.sum
    }
}

/// Returns revoked blocks among those of the log, with the last transaction that revokes them.
pub(super) fn revoked(log: &Log, found: &Found) -> Result<HashMap<u64, u32>> {
    let mut revoked = HashMap::new();
    let record_len = if log.has(BITS_64) { 8 } else { 4 };
    for (block, sequence) in &found.revokes {
        let bytes = log.read(*block)?;
        let tail_len = if log.has_sums() { TAIL_LEN } else { 0 };
        let end = packfs_core::usize_of(u64::from(be32(&bytes, HEAD_LEN)));
        if end > bytes.len().saturating_sub(tail_len) {
            return Err(
                Corruption::Journal { fault: "a list of revoked blocks longer than its block" }.into()
            );
        }
        let records = bytes.get(HEAD_LEN.saturating_add(4)..end).unwrap_or_default();
        for record in records.chunks_exact(record_len) {
            let target = if record_len == 8 { be64(record, 0) } else { u64::from(be32(record, 0)) };
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

/// Sums of single bytes.
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

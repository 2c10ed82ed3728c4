//! Fast commits: changes of single files behind the log, in records of tag, length and value.

use super::log::Log;
use crate::bytes::{joined, le16, le32};
use crate::corruption::{Corruption, READ_WITHOUT};
use crate::reader::Reader;
use crate::run::Run;
use packfs_core::{Error, Result};
use packfs_format::crc32c;

/// Bytes of tag and length.
const HEAD_LEN: usize = 4;
/// Bytes of the shortest record of an inode: its number, and what every filesystem stores.
const INODE_RECORD_LEN_MIN: usize = 132;

const ADD_RANGE: u16 = 1;
const DELETE_RANGE: u16 = 2;
const CREATE: u16 = 3;
const LINK: u16 = 4;
const UNLINK: u16 = 5;
const INODE: u16 = 6;
const PAD: u16 = 7;
const TAIL: u16 = 8;
const HEAD: u16 = 9;

/// A change.
#[derive(Debug)]
pub(super) enum Change {
    /// The inode, as far as it is stored.
    Inode { inode: u32, raw: Box<[u8]> },
    /// Blocks of a file that are elsewhere now.
    Add { inode: u32, run: Run },
    /// Blocks of a file that are holes now.
    Delete { inode: u32, first: u64, count: u64 },
    /// A name; `is_first` for the first one of an inode.
    Link { dir: u32, inode: u32, name: Box<[u8]>, is_first: bool },
    /// A name of an inode that is gone.
    Unlink { dir: u32, inode: u32, name: Box<[u8]> },
}

/// Changes of commits that are complete.
#[derive(Default)]
pub(super) struct Commits {
    pub(super) count: u64,
    pub(super) changes: Vec<Change>,
    /// Block and byte in it where they end.
    end: u64,
    end_at: usize,
}

/// Finds the commits that follow the last transaction of the log.
///
/// Errors: `Corrupt` if a commit that has its end is damaged: Linux writes that once all before it
/// is on disk. It refuses a first commit that is damaged, and leaves out a later one.
pub(super) fn scan(log: &Log, reader: &Reader, sequence: u32) -> Result<Commits> {
    let found = intact(log, reader, sequence)?;
    for block in found.end..log.fast.end {
        let bytes = log.read(block)?;
        let from = if block == found.end { found.end_at } else { 0 };
        let mut records = bytes.get(from..).unwrap_or_default().windows(HEAD_LEN.saturating_add(4));
        if records.any(|record| is_tail(record, sequence)) {
            return Err(Corruption::FastCommit { block, commit: found.count.saturating_add(1) }.into());
        }
    }
    Ok(found)
}

/// Returns true if a record ends a commit of a transaction.
fn is_tail(record: &[u8], sequence: u32) -> bool {
    (le16(record, 0), le32(record, HEAD_LEN)) == (TAIL, sequence) && le16(record, 2) >= 8
}

/// Finds the commits up to the first one that is damaged or was not written in full.
fn intact(log: &Log, reader: &Reader, sequence: u32) -> Result<Commits> {
    let mut found = Commits { end: log.fast.start, ..Commits::default() };
    let mut changes = Vec::new();
    let mut sum = 0;
    let inode_len_max = reader.super_block.inode_len.saturating_add(4);
    for block in log.fast.clone() {
        let bytes = log.read(block)?;
        // What does not begin with a head was left from before.
        if block == log.fast.start && le16(&bytes, 0) != HEAD {
            return Ok(found);
        }
        let mut at = 0_usize;
        while at.saturating_add(HEAD_LEN) <= bytes.len() {
            let record = bytes.get(at..).unwrap_or_default();
            let (tag, len) = (le16(record, 0), usize::from(le16(record, 2)));
            let end = len.saturating_add(HEAD_LEN);
            let whole = record.get(..end).filter(|_| is_length_of(tag, len, inode_len_max));
            let Some(whole) = whole else { return Ok(found) };
            let value = whole.get(HEAD_LEN..).unwrap_or_default();
            match tag {
                TAIL => {
                    let covered = whole.get(..HEAD_LEN.saturating_add(4)).unwrap_or_default();
                    if le32(value, 0) != sequence || le32(value, 4) != crc32c(sum, covered) {
                        return Ok(found);
                    }
                    sum = 0;
                    found.count = found.count.saturating_add(1);
                    found.changes.append(&mut changes);
                    (found.end, found.end_at) = (block, at.saturating_add(end));
                }
                HEAD => {
                    if le32(value, 4) != sequence {
                        return Ok(found);
                    }
                    let features = le32(value, 0);
                    if features != 0 {
                        let fault = format_args!("feature {features:#x} of a fast commit");
                        let error = Error::unsupported("ext4 image", fault);
                        return Err(error.hint(READ_WITHOUT));
                    }
                    sum = crc32c(sum, whole);
                }
                _ => {
                    sum = crc32c(sum, whole);
                    changes.extend(change(tag, value));
                }
            }
            at = at.saturating_add(end);
        }
    }
    Ok(found)
}

/// Returns true if a value of a record can have the length.
fn is_length_of(tag: u16, len: usize, inode_len_max: usize) -> bool {
    match tag {
        ADD_RANGE => len == 16,
        DELETE_RANGE => len == 12,
        CREATE | LINK | UNLINK => (9..=8 + 255).contains(&len),
        INODE => (INODE_RECORD_LEN_MIN..=inode_len_max).contains(&len),
        PAD => true,
        TAIL => len >= 8,
        HEAD => len == 8,
        _ => false,
    }
}

fn change(tag: u16, value: &[u8]) -> Option<Change> {
    let inode = le32(value, 0);
    Some(match tag {
        ADD_RANGE => {
            let len = le16(value, 8);
            let is_written = len <= 0x8000;
            let run = Run {
                first: u64::from(le32(value, 4)),
                count: u64::from(if is_written { len } else { len & 0x7fff }),
                block: joined(le32(value, 12), u32::from(le16(value, 10))),
                is_written,
            };
            Change::Add { inode, run }
        }
        DELETE_RANGE => {
            Change::Delete { inode, first: u64::from(le32(value, 4)), count: u64::from(le32(value, 8)) }
        }
        CREATE | LINK => Change::Link {
            dir: inode,
            inode: le32(value, 4),
            name: value.get(8..)?.into(),
            is_first: tag == CREATE,
        },
        UNLINK => Change::Unlink { dir: inode, inode: le32(value, 4), name: value.get(8..)?.into() },
        INODE => Change::Inode { inode, raw: value.get(4..)?.into() },
        _ => return None,
    })
}

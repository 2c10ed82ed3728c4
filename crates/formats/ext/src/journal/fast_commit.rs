//! Fast commits: changes of single files after the log, in records of tag, length, and value.

use super::log::Log;
use crate::corruption::{Corruption, READ_WITHOUT};
use crate::disk::{Ext4Inode, FcAddRange, FcDelRange, FcDentryInfo, FcHead, FcTail, FcTl};
use crate::reader::Reader;
use crate::run::Run;
use packfs_core::{Error, Result};
use packfs_format::{crc32c, structure, units::*};
use zerocopy::little_endian::U32;

const HEAD_LEN: usize = size_of::<FcTl>();
/// Length of the shortest inode record: number, and mandatory fields.
const INODE_RECORD_LEN_MIN: usize = size_of::<U32>() + size_of::<Ext4Inode>();

const TAIL_LEN: usize = size_of::<FcTail>();
const NAME_AT: usize = size_of::<FcDentryInfo>();

const ADD_RANGE: u16 = 1;
const DELETE_RANGE: u16 = 2;
const CREATE: u16 = 3;
const LINK: u16 = 4;
const UNLINK: u16 = 5;
const INODE: u16 = 6;
const PAD: u16 = 7;
const TAIL: u16 = 8;
const HEAD: u16 = 9;

#[derive(Debug)]
pub(super) enum Change {
    /// The inode, truncated to the stored fields.
    Inode {
        inode: u32,
        raw: Box<[u8]>,
    },
    /// Blocks of a file at a new address.
    Add {
        inode: u32,
        run: Run,
    },
    /// Blocks of a file that became holes.
    Delete {
        inode: u32,
        first: u64,
        count: u64,
    },
    /// A new name; `is_first` if the inode is new.
    Link {
        dir: u32,
        inode: u32,
        name: Box<[u8]>,
        is_first: bool,
    },
    Unlink {
        dir: u32,
        inode: u32,
        name: Box<[u8]>,
    },
}

/// Changes of complete commits.
#[derive(Default)]
pub(super) struct Commits {
    pub(super) count: u64,
    pub(super) changes: Vec<Change>,
    /// Block and offset of their end.
    end: u64,
    end_at: usize,
}

/// Finds the commits after the last transaction of the log.
///
/// Errors: `Corrupt` if a commit with a tail is damaged: Linux writes the tail once everything
/// before it is on disk. Linux refuses a damaged first commit, and skips a later one.
pub(super) fn scan(log: &Log, reader: &Reader, sequence: u32) -> Result<Commits> {
    let found = intact(log, reader, sequence)?;
    for block in found.end..log.fast.end {
        let bytes = log.read(block)?;
        let from = if block == found.end { found.end_at } else { 0 };
        let mut records = bytes.within(from..).windows(HEAD_LEN.plus(4));
        if records.any(|record| is_tail(record, sequence)) {
            return Err(Corruption::FastCommit { block, commit: found.count.plus(1) }.into());
        }
    }
    Ok(found)
}

fn is_tail(record: &[u8], sequence: u32) -> bool {
    let tail = structure(record, 0).zip(structure(record, HEAD_LEN));
    tail.is_some_and(|(head, tid): (FcTl, U32)| {
        (head.fc_tag.get(), tid.get()) == (TAIL, sequence) && usize::from(head.fc_len.get()) >= TAIL_LEN
    })
}

/// Finds the commits before the first damaged or incomplete one.
fn intact(log: &Log, reader: &Reader, sequence: u32) -> Result<Commits> {
    let mut found = Commits { end: log.fast.start, ..Commits::default() };
    let mut changes = Vec::new();
    let mut sum = 0;
    let inode_len_max = reader.super_block.inode_len.plus(4);
    for block in log.fast.clone() {
        let bytes = log.read(block)?;
        // A block without a head remains from before.
        let is_head = structure(&bytes, 0).is_some_and(|head: FcTl| head.fc_tag.get() == HEAD);
        if block == log.fast.start && !is_head {
            return Ok(found);
        }
        let mut at = 0_usize;
        while let Some(head) = structure::<FcTl>(&bytes, at) {
            let record = bytes.within(at..);
            let (tag, len) = (head.fc_tag.get(), usize::from(head.fc_len.get()));
            let end = len.plus(HEAD_LEN);
            let whole = record.get(..end).filter(|_| is_length_of(tag, len, inode_len_max));
            let Some(whole) = whole else { return Ok(found) };
            let value = whole.within(HEAD_LEN..);
            match tag {
                TAIL => {
                    let covered = whole.within(..HEAD_LEN.plus(4));
                    let wanted = FcTail { fc_tid: sequence.into(), fc_crc: crc32c(sum, covered).into() };
                    if structure(value, 0) != Some(wanted) {
                        return Ok(found);
                    }
                    sum = 0;
                    found.count = found.count.plus(1);
                    found.changes.append(&mut changes);
                    (found.end, found.end_at) = (block, at.plus(end));
                }
                HEAD => {
                    let head = structure(value, 0).filter(|head: &FcHead| head.fc_tid.get() == sequence);
                    let Some(head) = head else { return Ok(found) };
                    let features = head.fc_features.get();
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
            at = at.plus(end);
        }
    }
    Ok(found)
}

fn is_length_of(tag: u16, len: usize, inode_len_max: usize) -> bool {
    match tag {
        ADD_RANGE => len == size_of::<FcAddRange>(),
        DELETE_RANGE => len == size_of::<FcDelRange>(),
        CREATE | LINK | UNLINK => (NAME_AT + 1..=NAME_AT + 255).contains(&len),
        INODE => (INODE_RECORD_LEN_MIN..=inode_len_max).contains(&len),
        PAD => true,
        TAIL => len >= TAIL_LEN,
        HEAD => len == size_of::<FcHead>(),
        _ => false,
    }
}

fn change(tag: u16, value: &[u8]) -> Option<Change> {
    if tag == INODE {
        let inode = structure(value, 0).map(U32::get)?;
        return Some(Change::Inode { inode, raw: value.get(size_of::<U32>()..)?.into() });
    }
    Some(match tag {
        ADD_RANGE => {
            let raw: FcAddRange = structure(value, 0)?;
            Change::Add { inode: raw.fc_ino.get(), run: raw.fc_ex.run() }
        }
        DELETE_RANGE => {
            let raw: FcDelRange = structure(value, 0)?;
            let (first, count) = (raw.fc_lblk.get().into(), raw.fc_len.get().into());
            Change::Delete { inode: raw.fc_ino.get(), first, count }
        }
        CREATE | LINK | UNLINK => {
            let raw: FcDentryInfo = structure(value, 0)?;
            let (dir, inode) = (raw.fc_parent_ino.get(), raw.fc_ino.get());
            let name = value.get(NAME_AT..)?.into();
            match tag {
                UNLINK => Change::Unlink { dir, inode, name },
                _ => Change::Link { dir, inode, name, is_first: tag == CREATE },
            }
        }
        _ => return None,
    })
}

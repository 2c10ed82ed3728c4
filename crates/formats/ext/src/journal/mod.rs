//! Journals, replayed in memory: an overlay of the blocks of committed transactions.
//!
//! Source: `fs/jbd2/recovery.c` and `fs/ext4/fast_commit.c` of Linux.

mod apply;
mod fast_commit;
mod log;
mod run_map;
mod scan;

use crate::corruption::{Corruption, READ_WITHOUT};
use crate::features::{Features, JOURNAL_DEV};
use crate::patches::Patches;
use crate::reader::Reader;
use crate::super_block::{SUPER_AT, SuperBlock};
use fast_commit::Commits;
use log::Log;
use packfs_core::{Error, Image, OverlayImage, Result};
use packfs_format::units::*;
use std::sync::Arc;

const MAGIC: u32 = 0xc03b_3998;

pub(crate) struct Replayed {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) super_block: SuperBlock,
    pub(crate) patches: Patches,
    transactions: u64,
    fast_commits: u64,
    /// Number of changed blocks after the end of the image.
    behind: u64,
    /// Number of skipped changes of fast commits.
    left_out: u64,
}

impl Replayed {
    pub(crate) fn warnings(&self) -> Vec<String> {
        let Replayed { transactions, fast_commits, behind, left_out, .. } = self;
        let fast = match fast_commits {
            0 => String::new(),
            count => format!(", {count} fast commits"),
        };
        let replayed =
            format!("journal replayed in memory ({transactions} transactions{fast}); the image is unchanged");
        let rows = [
            (transactions.plus(*fast_commits) > 0, replayed),
            (*behind > 0, format!("journal: {behind} changed blocks are after the end of the image")),
            (*left_out > 0, format!("journal: {left_out} changes refer to something that cannot be read")),
        ];
        rows.into_iter().filter(|row| row.0).map(|(_, text)| text).collect()
    }
}

/// `None` if the journal contains no changes.
pub(crate) fn replay(reader: &Reader, devices: &[Arc<dyn Image>]) -> Result<Option<Replayed>> {
    let log = match reader.super_block.raw.s_journal_inum.get() {
        0 => external(reader, devices)?,
        inode => Log::internal(reader, inode)?,
    };
    if log.start == 0 {
        return Ok(None);
    }
    replay_log(reader, &log).map_err(|error| {
        if error.hints().iter().any(|hint| hint == READ_WITHOUT) { error } else { error.hint(READ_WITHOUT) }
    })
}

fn replay_log(reader: &Reader, log: &Log) -> Result<Option<Replayed>> {
    // Creation time, in seconds since 1970.
    let made_at = u64::from(reader.super_block.raw.s_mkfs_time.get());
    let found = scan::scan(log, made_at)?;
    let mut overlay = OverlayImage::new(Arc::clone(&reader.image), reader.super_block.block_len);
    let behind = apply_data(log, &found, reader, &mut overlay)?;
    let mut image = Arc::clone(&reader.image);
    if !overlay.is_unchanged() {
        image = Arc::new(overlay);
    }
    // Also without the filesystem's feature: the journal may be older than that.
    let commits = if log.has(log::FAST_COMMIT) {
        fast_commit::scan(log, reader, found.next_sequence)?
    } else {
        Commits::default()
    };
    let mut super_block = SuperBlock::read(&*image)?;
    let (mut patches, mut left_out) = (Patches::default(), 0);
    if commits.count > 0 {
        let applied = apply::apply(&Reader::new(Arc::clone(&image), super_block), commits.changes)?;
        (image, patches, left_out) = (applied.image, applied.patches, applied.left_out);
        super_block = SuperBlock::read(&*image)?;
    }
    let is_changed = found.transactions > 0 || commits.count > 0;
    Ok(is_changed.then_some(Replayed {
        image,
        super_block,
        patches,
        transactions: found.transactions,
        fast_commits: commits.count,
        behind,
        left_out,
    }))
}

/// Writes data of the log to the overlay, except blocks revoked later. Returns the number of blocks
/// after the end of the image, which may be truncated. The filesystem may have grown.
fn apply_data(log: &Log, found: &scan::Found, reader: &Reader, overlay: &mut OverlayImage) -> Result<u64> {
    let revoked = scan::revoked(log, found)?;
    let end = reader.image.len().div_ceil(reader.super_block.block_len);
    let mut behind = 0_u64;
    let mut rows: Vec<_> = found.data.values().collect();
    rows.sort_unstable_by_key(|data| data.block);
    for data in rows {
        let is_revoked =
            revoked.get(&data.target).is_some_and(|sequence| !scan::is_after(data.sequence, *sequence));
        if is_revoked {
            continue;
        }
        if data.target >= end {
            behind = behind.plus(1);
            continue;
        }
        let bytes = if data.is_escaped || log.has_sums() { Some(log.read(data.block)?) } else { None };
        if let Some(bytes) = &bytes
            && !log.is_sum_of(data.sum, data.sequence, bytes)
        {
            return Err(Corruption::JournalSum { block: data.block, what: "data" }.into());
        }
        match bytes.filter(|_| data.is_escaped) {
            Some(mut bytes) => {
                crate::bytes::put(&mut bytes, 0, &MAGIC.to_be_bytes());
                overlay.set_block(data.target, bytes);
            }
            None if log.is_external => {
                overlay.take_block(data.target, &log.image, log.offset(data.block)?);
            }
            None => overlay.move_block(data.target, log.offset(data.block)?),
        }
    }
    Ok(behind)
}

fn external(reader: &Reader, devices: &[Arc<dyn Image>]) -> Result<Log> {
    let wanted = &reader.super_block.raw.s_journal_uuid;
    for device in devices {
        let Ok(raw) = crate::super_block::read_raw(&**device) else { continue };
        if Features::of(&raw).needs(JOURNAL_DEV) && raw.s_uuid == *wanted {
            let block_len = reader.super_block.block_len;
            let start = SUPER_AT.quotient(block_len).plus(1);
            return Log::external(Arc::clone(device), block_len, start);
        }
    }
    let uuid = crate::super_block::uuid_text(wanted);
    let fault =
        format!("the journal is on another device (UUID {uuid}), and holds changes of the filesystem");
    let error = Error::unsupported("ext4 image", fault);
    Err(error.hint("--device FILE names the device of the journal").hint(READ_WITHOUT))
}

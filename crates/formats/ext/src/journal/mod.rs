//! Journals, replayed in memory: an overlay of the blocks that committed transactions hold.
//!
//! Source: `fs/jbd2/recovery.c` and `fs/ext4/fast_commit.c` of Linux.

mod apply;
mod fast_commit;
mod log;
mod scan;

use crate::bytes::{field, le32};
use crate::corruption::{Corruption, READ_WITHOUT};
use crate::disk::{SUPER_AT, SuperBlock};
use crate::features::{FAST_COMMIT, Features, JOURNAL_DEV};
use crate::patches::Patches;
use crate::reader::Reader;
use log::Log;
use packfs_core::{Error, Image, OverlayImage, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// First bytes of every block that describes others.
const MAGIC: u32 = 0xc03b_3998;

/// An image with the changes of its journal.
pub(crate) struct Replayed {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) patches: Patches,
    transactions: u64,
    fast_commits: u64,
}

impl Replayed {
    /// Returns the sentence that the user is told.
    pub(crate) fn warning(&self) -> String {
        let fast = match self.fast_commits {
            0 => String::new(),
            count => format!(", {count} fast commits"),
        };
        format!(
            "journal replayed in memory ({} transactions{fast}); the image is unchanged",
            self.transactions
        )
    }
}

/// Replays the journal of a filesystem; `None` if there is nothing in it.
pub(crate) fn replay(reader: &Reader, devices: &[Arc<dyn Image>]) -> Result<Option<Replayed>> {
    let log = match le32(&reader.super_block.raw, 0xe0) {
        0 => external(reader, devices)?,
        inode => Log::internal(reader, inode)?,
    };
    if log.start == 0 {
        return Ok(None);
    }
    let found = scan::scan(&log, reader)?;
    let mut overlay = OverlayImage::new(Arc::clone(&reader.image), reader.super_block.block_len);
    let revoked = scan::revoked(&log, &found)?;
    apply_data(&log, &found, &revoked, &mut overlay)?;
    let mut replayed = Replayed {
        image: Arc::clone(&reader.image),
        patches: Patches::default(),
        transactions: found.transactions,
        fast_commits: 0,
    };
    if !overlay.is_unchanged() {
        replayed.image = Arc::new(overlay);
    }
    if reader.super_block.features.has(FAST_COMMIT) && log.has(log::FAST_COMMIT) {
        let commits = fast_commit::scan(&log, reader, found.next_sequence)?;
        if commits.count > 0 {
            let super_block = SuperBlock::read(&*replayed.image)?;
            let reader = Reader::new(Arc::clone(&replayed.image), super_block);
            replayed.fast_commits = commits.count;
            (replayed.image, replayed.patches) = apply::apply(&reader, commits.changes)?;
        }
    }
    let is_changed = replayed.transactions > 0 || replayed.fast_commits > 0;
    Ok(is_changed.then_some(replayed))
}

/// Puts data of the log over the image, except what was revoked later.
fn apply_data(
    log: &Log,
    found: &scan::Found,
    revoked: &HashMap<u64, u32>,
    overlay: &mut OverlayImage,
) -> Result<()> {
    for data in &found.data {
        let is_revoked =
            revoked.get(&data.target).is_some_and(|sequence| !scan::is_after(data.sequence, *sequence));
        if is_revoked {
            continue;
        }
        let is_read = data.is_escaped || log.has_sums() || log.is_external;
        let bytes = if is_read { Some(log.read(data.block)?) } else { None };
        if let Some(bytes) = &bytes
            && !log.is_sum_of(data.sum, data.sequence, bytes)
        {
            return Err(Corruption::JournalSum { block: data.block, what: "data" }.into());
        }
        match bytes {
            Some(mut bytes) if data.is_escaped || log.is_external => {
                if data.is_escaped {
                    crate::bytes::put(&mut bytes, 0, &MAGIC.to_be_bytes());
                }
                overlay.set_block(data.target, bytes);
            }
            _ => overlay.move_block(data.target, log.offset(data.block)?),
        }
    }
    Ok(())
}

/// Finds the journal on a device of its own.
fn external(reader: &Reader, devices: &[Arc<dyn Image>]) -> Result<Log> {
    let wanted = field(&reader.super_block.raw, 0xd0, 16);
    for device in devices {
        let Ok(raw) = crate::disk::read_raw(&**device) else { continue };
        if Features::of(&raw).needs(JOURNAL_DEV) && field(&raw, 0x68, 16) == wanted {
            let block_len = reader.super_block.block_len;
            let start = SUPER_AT.checked_div(block_len).unwrap_or(0).saturating_add(1);
            return Log::external(Arc::clone(device), block_len, start);
        }
    }
    let uuid = crate::disk::uuid_text(wanted);
    let fault =
        format!("the journal is on another device (UUID {uuid}), and holds changes of the filesystem");
    let error = Error::unsupported("ext4 image", fault);
    Err(error.hint("--device FILE names the device of the journal").hint(READ_WITHOUT))
}

//! The log: its state, and replay of its changes in memory. The image is never written.
//!
//! Source: `fs/xfs/xfs_log_recover.c` and the `*_recover.c` files of items of Linux.

mod apply;
mod buffer;
mod format;
mod head;
mod inode;
mod intent;
mod notes;
mod record;
mod rest;
mod ring;
mod state;
mod target;
#[cfg(test)]
mod tests;
mod transaction;

use crate::corruption::{Corruption, READ_WITHOUT};
use crate::super_block::{SECTOR, SuperBlock};
use head::Span;
pub(crate) use intent::{Exchange, Intent, Remap};
pub(crate) use notes::Notes;
use packfs_core::{Error, Image, OverlayImage, Result};
use packfs_format::units::*;
use record::Header;
pub(crate) use rest::Rest;
use ring::Ring;
pub(crate) use ring::is_log_of;
use state::{Cancelled, Replay};
use std::sync::Arc;
use target::Target;
use transaction::{Assembly, Commit};

/// `XFS_MAX_LOG_BYTES`.
const LEN_MAX: u64 = 2 << 30;
/// Supported log features: changes of attributes as intents.
const KNOWN_FEATURES: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogState {
    Clean,
    /// With changes that may not be on disk.
    Dirty,
    /// On a separate device that was not given.
    External,
}

impl LogState {
    pub(crate) fn word(self) -> &'static str {
        match self {
            LogState::Clean => "clean",
            LogState::Dirty => "dirty",
            LogState::External => "on another device",
        }
    }
}

pub(crate) struct Log {
    ring: Ring,
    span: Option<Span>,
    pub(crate) rest: Option<Rest>,
    pub(crate) is_empty: bool,
}

pub(crate) struct Replayed {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) notes: Notes,
    /// Unfinished multi-step changes.
    pub(crate) intents: Vec<Intent>,
    /// Number of further intents beyond the limit.
    pub(crate) intents_left_out: u64,
    transactions: u64,
    /// First version 4 record with a wrong checksum; Linux ignores it.
    wrong_sum: Option<u64>,
}

impl Replayed {
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let count = self.transactions;
        let replayed = format!("log replayed in memory ({count} transactions); the image is unchanged");
        let wrong_sum = self.wrong_sum.map(|sector| {
            format!("log record at sector {sector}: wrong checksum; it was replayed, as Linux does")
        });
        std::iter::once(replayed).chain(wrong_sum)
    }
}

impl Log {
    /// Finds the head of a log on a separate device, or else in the image. `None` if its device is
    /// missing.
    pub(crate) fn find(
        image: &Arc<dyn Image>,
        device: Option<&Arc<dyn Image>>,
        super_block: &SuperBlock,
    ) -> Result<Option<Log>> {
        let len = super_block.log_blocks.times(super_block.block_len);
        let (image, range) = match (super_block.log_start, device) {
            (0, None) => return Ok(None),
            (0, Some(device)) => (device, 0..len),
            (..) => match super_block.internal_log() {
                Some(range) => (image, range),
                None => return Err(Corruption::Log { fault: "outside of its group" }.into()),
            },
        };
        if !(SECTOR..=LEN_MAX).contains(&len) {
            return Err(Corruption::Log { fault: "its length is not 512 bytes to 2 GiB" }.into());
        }
        if range.end > image.len() {
            return Err(Corruption::LogBehind { end: range.end, len: image.len() }.into());
        }
        let ring = Ring::new(Arc::clone(image), range, super_block);
        let head::Found { span, rest, is_empty } = head::find(&ring)?;
        Ok(Some(Log { ring, span, rest, is_empty }))
    }

    pub(crate) fn state(&self) -> LogState {
        if self.span.is_some() { LogState::Dirty } else { LogState::Clean }
    }

    pub(crate) fn replay(
        &self,
        image: &Arc<dyn Image>,
        super_block: &SuperBlock,
    ) -> Result<Option<Replayed>> {
        let Some(span) = self.span else { return Ok(None) };
        let unknown = super_block.log_features & !KNOWN_FEATURES;
        if unknown != 0 {
            let what = format!("unknown features of the log ({unknown:#x}), which holds changes");
            return Err(Error::unsupported("xfs image", what).hint(READ_WITHOUT));
        }
        let mut cancelled = Cancelled::default();
        let wrong_sum =
            self.pass(span, &mut |_, items| items.iter().try_for_each(|item| cancelled.note(item)))?;
        let overlay = OverlayImage::new(Arc::clone(image), SECTOR);
        let mut replay = Replay {
            target: Target::new(super_block, overlay, span.len.times(SECTOR)),
            cancelled,
            changed: Default::default(),
            notes: Notes::default(),
            intents: Default::default(),
            transactions: 0,
        };
        self.pass(span, &mut |lsn, items| replay.transaction(lsn, &items))?;
        replay.finish_blocks()?;
        let intents_left_out = replay.intents.left_out;
        Ok(Some(Replayed {
            image: Arc::new(replay.target.overlay),
            notes: replay.notes,
            intents: replay.intents.unfinished(),
            intents_left_out,
            transactions: replay.transactions,
            wrong_sum,
        }))
    }

    /// Calls `commit` for the committed transactions of a span, in the order of their ends. Returns
    /// the first version 4 record with a wrong checksum.
    fn pass(&self, span: Span, commit: &mut Commit<'_>) -> Result<Option<u64>> {
        let ring = &self.ring;
        let mut assembly = Assembly::default();
        let mut done = 0_u64;
        let mut wrong_sum = None;
        while done < span.len {
            let header = Header::read(ring, span.tail.plus(done))?;
            let fault = |fault| Corruption::log_record(header.sector, fault);
            header.check_origin(ring)?;
            let mut data = header.data(ring)?;
            // Version 4 records need no checksum, and Linux ignores wrong ones.
            match header.is_sum_of(&data) {
                true if header.has_sum() || !ring.is_v5 => {}
                false if !ring.is_v5 => wrong_sum = wrong_sum.or(Some(header.sector)),
                _ => return Err(fault("wrong checksum").into()),
            }
            if header.len == 0 {
                return Err(fault("it has no data").into());
            }
            header.unpack(&mut data);
            assembly.add(&header, &data, commit)?;
            done = done.plus(header.all_sectors());
        }
        Ok(wrong_sum)
    }
}

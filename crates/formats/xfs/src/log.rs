//! State of the log: clean, or with changes that are not applied.

use crate::disk::{be32, byte};
use crate::super_block::{SECTOR, SuperBlock};
use packfs_core::{Image, Result};

/// First bytes of a record.
const MAGIC: u32 = 0xfeed_babe;
/// Most sectors of a record, and of what may stand behind the last one.
const RECORD_SECTORS_MAX: u64 = 1024;
/// Bytes of changes that a header of a record describes.
const HEADER_COVERS: u32 = 32 << 10;
/// Flag of an operation: the filesystem was unmounted.
const UNMOUNT: u8 = 0x20;

/// State of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogState {
    Clean,
    Dirty,
    /// On a device of its own.
    External,
}

impl LogState {
    /// Finds the last record, as `xlog_find_head` of Linux does: the number of the round through
    /// the log falls behind it. A clean log ends with the record of an unmount.
    pub(crate) fn of(image: &dyn Image, super_block: &SuperBlock) -> Result<LogState> {
        let Some(log) = super_block.internal_log() else { return Ok(LogState::External) };
        let count = packfs_core::len_of(&log) / SECTOR;
        let read = |sector: u64| -> Result<[u8; 512]> {
            let mut bytes = [0; 512];
            image.read_at(log.start.saturating_add(sector.saturating_mul(SECTOR)), &mut bytes)?;
            Ok(bytes)
        };
        let cycle = |bytes: &[u8; 512]| match be32(bytes, 0) {
            MAGIC => be32(bytes, 4),
            number => number,
        };
        let round = cycle(&read(0)?);
        if round == 0 {
            return Ok(LogState::Clean);
        }
        // The first sector of another round, between `low` and `high`.
        let (mut low, mut high) = (0, count);
        while high.saturating_sub(low) > 1 {
            let middle = low.saturating_add(high) / 2;
            if cycle(&read(middle)?) == round { low = middle } else { high = middle }
        }
        for back in 1..=RECORD_SECTORS_MAX.min(count) {
            let sector = high.saturating_add(count).saturating_sub(back).checked_rem(count).unwrap_or(0);
            let header = read(sector)?;
            if be32(&header, 0) != MAGIC {
                continue;
            }
            let headers = be32(&header, 320).div_ceil(HEADER_COVERS).max(1);
            let operation = read(sector.saturating_add(headers.into()).checked_rem(count).unwrap_or(0))?;
            let is_unmount = be32(&header, 40) == 1 && byte(&operation, 9) & UNMOUNT != 0;
            return Ok(if is_unmount { LogState::Clean } else { LogState::Dirty });
        }
        Ok(LogState::Dirty)
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            LogState::Clean => "clean",
            LogState::Dirty => "dirty",
            LogState::External => "on another device",
        }
    }

    /// Returns the warning for users.
    pub(crate) fn warning(self) -> Option<&'static str> {
        match self {
            LogState::Clean => None,
            LogState::Dirty => Some(
                "the log holds changes that were not applied: files changed shortly before may be missing or \
                 old; mounting a copy once with Linux applies them",
            ),
            LogState::External => {
                Some("the log is on another device: changes that it may hold were not applied")
            }
        }
    }
}

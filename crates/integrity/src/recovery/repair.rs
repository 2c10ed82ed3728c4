//! Finds lost blocks of an image, and repairs them.

use super::code::{self, IntactBlocks};
use super::index::RecoveryIndex;
use super::protect::{checksum, piece_range, read_piece};
use crate::ordered;
use packfs_core::{Error, ErrorKind, Image, Progress, Result, ResultExt, Stage};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// State of an image and its recovery data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RecoveryState {
    /// Numbers of the image's blocks that are damaged, missing or unreadable.
    pub lost: Vec<u32>,
    /// Recovery blocks that are intact.
    pub good_recovery: Vec<u32>,
    /// Bytes of the image after the protected ones.
    pub beyond: u64,
}

impl RecoveryState {
    /// Returns true if no block is lost.
    pub fn is_intact(&self) -> bool {
        self.lost.is_empty()
    }

    /// Returns true if all lost blocks can be repaired.
    pub fn is_repairable(&self) -> bool {
        self.lost.len() <= self.good_recovery.len()
    }
}

/// False for an unreadable block.
fn is_good(outcome: Result<[u8; 16]>, expected: &[u8; 16]) -> Result<bool> {
    match outcome {
        Ok(found) => Ok(found == *expected),
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Compares every block of an image and of its recovery file with its checksum.
///
/// Errors: `Cancelled`; unreadable blocks count as lost.
pub fn survey(
    image: &dyn Image,
    file: &dyn Image,
    index: &RecoveryIndex,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<RecoveryState> {
    let params = index.params;
    progress.begin(Stage::Verify, 1, params.image_len);
    let (mut lost, mut good_recovery) = (Vec::new(), Vec::new());
    let data = |buf: &mut Vec<u8>, block: &u32| {
        let (start, len) = params.data_range(*block);
        let found =
            checksum(params.block_len, len, buf, |offset, part| image.read_exact_at(start + offset, part));
        progress.advance(0, len, 0);
        is_good(found, index.data_checksum(*block))
    };
    ordered::in_order(jobs, (0..params.data_count).map(Ok), progress, Vec::new, data, &mut |block, good| {
        if !good {
            lost.push(block);
        }
        Ok(())
    })?;
    let recovery = |buf: &mut Vec<u8>, block: &u32| {
        let start = params.recovery_at(*block);
        let len = u64::from(params.block_len);
        let found =
            checksum(params.block_len, len, buf, |offset, part| file.read_exact_at(start + offset, part));
        is_good(found, index.recovery_checksum(*block))
    };
    ordered::in_order(
        jobs,
        (0..params.recovery_count).map(Ok),
        progress,
        Vec::new,
        recovery,
        &mut |block, good| {
            if good {
                good_recovery.push(block);
            }
            Ok(())
        },
    )?;
    Ok(RecoveryState { lost, good_recovery, beyond: image.len().saturating_sub(params.image_len) })
}

pub(super) fn ensure_repairable(
    image: &dyn Image,
    index: &RecoveryIndex,
    state: &RecoveryState,
) -> Result<()> {
    if state.is_repairable() {
        return Ok(());
    }
    let params = index.params;
    let (lost, good) = (state.lost.len(), state.good_recovery.len());
    let fault = format!(
        "{lost} of {} blocks of {} bytes are lost, but only {good} can be repaired",
        params.data_count, params.block_len
    );
    Err(Error::corrupt(image.name(), fault).hint("check --repair-hints lists the damaged files"))
}

/// Writes the lost blocks to `out`, at their positions; `out` may be the image itself, because lost
/// blocks are not read. Every block is compared with its checksum after writing.
///
/// Errors: `Corrupt` if more is lost than can be repaired; `Io`, `Cancelled`.
pub fn repair(
    image: &dyn Image,
    file: &dyn Image,
    index: &RecoveryIndex,
    state: &RecoveryState,
    out: &File,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<()> {
    let params = index.params;
    ensure_repairable(image, index, state)?;
    if state.is_intact() {
        return Ok(());
    }
    progress.begin(Stage::Data, 1, u64::from(params.data_count) * u64::from(params.block_len));
    let cannot = || format!("cannot write repaired blocks of {}", image.name());
    let mut lost = vec![false; params.data_count as usize];
    for block in &state.lost {
        lost[*block as usize] = true;
    }
    let recovery = state.good_recovery[..state.lost.len()].to_vec();
    let left =
        IntactBlocks { data_count: params.data_count, recovery_count: params.recovery_count, lost, recovery };
    let read = |is_data: bool, block: u32, column: &Range<u32>, piece: &mut [u8]| {
        if !is_data {
            return file.read_exact_at(params.recovery_at(block) + u64::from(column.start), piece);
        }
        read_piece(image, &params, block, column, piece)
    };
    let write = |block: u32, column: &Range<u32>, piece: &[u8]| {
        let (start, there) = piece_range(&params, block, column);
        out.write_all_at(&piece[..there], start).or_io(cannot)
    };
    // The code uses a power of two of pieces, which may be twice the number of blocks.
    let work_count = params.block_count().next_power_of_two() * 2;
    let columns = code::columns(params.block_len, work_count, jobs);
    code::decode(&left, columns, jobs, progress, &read, &write)?;
    for block in &state.lost {
        let (start, len) = params.data_range(*block);
        let found = checksum(params.block_len, len, &mut Vec::new(), |offset, part| {
            out.read_exact_at(part, start + offset).or_io(cannot)
        })?;
        if found != *index.data_checksum(*block) {
            let fault = format!("block {block} is still damaged after repair");
            return Err(Error::corrupt(image.name(), fault)
                .hint("the image or the recovery file changed during repair"));
        }
    }
    Ok(())
}

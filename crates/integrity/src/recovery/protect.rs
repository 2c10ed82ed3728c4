//! Creates recovery data for an image.

use super::code;
use super::index::{self, Checksum};
use super::params::{CHECKSUM_LEN, RecoveryParams};
use crate::ordered;
use packfs_core::{Image, Progress, Result, ResultExt, Stage};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Bytes read at a time.
const STEP_LEN: usize = 256 << 10;

/// `read` yields the `len` bytes of a block at an offset; zeros follow up to `block_len`.
pub(super) fn checksum(
    block_len: u32,
    len: u64,
    buf: &mut Vec<u8>,
    read: impl Fn(u64, &mut [u8]) -> Result<()>,
) -> Result<Checksum> {
    let mut hasher = Sha256::new();
    let mut offset = 0;
    while offset < u64::from(block_len) {
        let part_len = (u64::from(block_len) - offset).min(STEP_LEN as u64);
        buf.clear();
        buf.resize(part_len as usize, 0);
        let there = len.saturating_sub(offset).min(part_len) as usize;
        if there > 0 {
            read(offset, &mut buf[..there])?;
        }
        hasher.update(&buf);
        offset += part_len;
    }
    let mut checksum = [0; CHECKSUM_LEN];
    checksum.copy_from_slice(&hasher.finalize()[..CHECKSUM_LEN]);
    Ok(checksum)
}

/// Start in the image of a block's piece of a column, and the number of its bytes within the image.
pub(super) fn piece_range(params: &RecoveryParams, block: u32, column: &Range<u32>) -> (u64, usize) {
    let (start, len) = params.data_range(block);
    let there = len.saturating_sub(column.start.into()).min(column.len() as u64);
    (start + u64::from(column.start), there as usize)
}

/// Padded with zeros beyond the image.
pub(super) fn read_piece(
    image: &dyn Image,
    params: &RecoveryParams,
    block: u32,
    column: &Range<u32>,
    piece: &mut [u8],
) -> Result<()> {
    let (start, there) = piece_range(params, block, column);
    piece[there..].fill(0);
    // Nothing is read beyond the end of the image.
    if there == 0 { Ok(()) } else { image.read_exact_at(start, &mut piece[..there]) }
}

/// Writes a recovery file for an image to `out`, which is empty.
///
/// Errors: `Io`, `Cancelled`.
pub fn protect(
    image: &dyn Image,
    params: RecoveryParams,
    out: &File,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<()> {
    progress.begin(Stage::Hash, 1, image.len());
    let cannot = || format!("cannot write recovery data of {}", image.name());
    out.set_len(params.file_len()).or_io(cannot)?;
    let mut checksums = Vec::with_capacity(params.block_count());
    let of_data = |buf: &mut Vec<u8>, block: &u32| {
        let (start, len) = params.data_range(*block);
        let checksum =
            checksum(params.block_len, len, buf, |offset, part| image.read_exact_at(start + offset, part))?;
        progress.advance(0, len, 0);
        Ok(checksum)
    };
    let blocks = |count: u32| (0..count).map(Ok);
    ordered::in_order(jobs, blocks(params.data_count), progress, Vec::new, of_data, &mut |_, checksum| {
        checksums.push(checksum);
        Ok(())
    })?;

    progress.begin(Stage::Data, 1, u64::from(params.data_count) * u64::from(params.block_len));
    let read =
        |block: u32, column: &Range<u32>, piece: &mut [u8]| read_piece(image, &params, block, column, piece);
    let write = |block: u32, column: &Range<u32>, piece: &[u8]| {
        out.write_all_at(piece, params.recovery_at(block) + u64::from(column.start)).or_io(cannot)
    };
    let work_count = params.block_count().next_power_of_two();
    let columns = code::columns(params.block_len, work_count, jobs);
    code::encode((params.data_count, params.recovery_count), columns, jobs, progress, &read, &write)?;

    let of_recovery = |buf: &mut Vec<u8>, block: &u32| {
        let start = params.recovery_at(*block);
        checksum(params.block_len, params.block_len.into(), buf, |offset, part| {
            out.read_exact_at(part, start + offset).or_io(cannot)
        })
    };
    ordered::in_order(
        jobs,
        blocks(params.recovery_count),
        progress,
        Vec::new,
        of_recovery,
        &mut |_, checksum| {
            checksums.push(checksum);
            Ok(())
        },
    )?;
    for (at, page) in index::pages(params, &checksums)? {
        out.write_all_at(&page, at).or_io(cannot)?;
    }
    Ok(())
}

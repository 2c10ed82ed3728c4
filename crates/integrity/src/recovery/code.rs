//! The Reed-Solomon code over blocks in columns, so that memory is bounded for blocks of any
//! length.
//!
//! Always the crate's high rate: its automatic choice might change. Columns are multiples of 64
//! bytes, the unit of the code; their width does not affect the result.

use crate::ordered;
use packfs_core::{Error, Progress, Result};
use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{HighRateDecoder, HighRateEncoder, RateDecoder, RateEncoder};
use std::ops::Range;

/// Most bytes of memory of a worker.
const WORK_LEN: usize = 32 << 20;
/// Unit of the code in bytes.
const UNIT_LEN: usize = 64;

fn failed(error: reed_solomon_simd::Error) -> Error {
    Error::failed(format!("cannot compute recovery data: {error}"))
}

/// Workers hold `block_count` pieces at a time.
pub(super) fn columns(
    block_len: u32,
    block_count: usize,
    jobs: usize,
) -> impl Iterator<Item = Result<Range<u32>>> + Send {
    let fits = WORK_LEN / block_count.max(1) / UNIT_LEN * UNIT_LEN;
    let shared = (block_len as usize / packfs_core::thread_count(jobs)).next_multiple_of(UNIT_LEN);
    let width = fits.min(shared).max(UNIT_LEN).min(block_len as usize) as u32;
    (0..block_len.div_ceil(width)).map(move |index| Ok(index * width..(index * width + width).min(block_len)))
}

pub(super) type Read<'a> = dyn Fn(u32, &Range<u32>, &mut [u8]) -> Result<()> + Sync + 'a;
/// `true` selects the image, `false` recovery data.
pub(super) type ReadIntact<'a> = dyn Fn(bool, u32, &Range<u32>, &mut [u8]) -> Result<()> + Sync + 'a;
pub(super) type Write<'a> = dyn Fn(u32, &Range<u32>, &[u8]) -> Result<()> + Sync + 'a;

/// `read` yields pieces of the image's blocks, and `write` receives those of recovery blocks.
pub(super) fn encode(
    (data_count, recovery_count): (u32, u32),
    columns: impl Iterator<Item = Result<Range<u32>>> + Send,
    jobs: usize,
    progress: &dyn Progress,
    read: &Read<'_>,
    write: &Write<'_>,
) -> Result<()> {
    let work = |work: &mut Option<_>, column: &Range<u32>| {
        let width = column.len();
        let (data, recovery) = (data_count as usize, recovery_count as usize);
        let mut encoder =
            HighRateEncoder::new(data, recovery, width, DefaultEngine::new(), work.take()).map_err(failed)?;
        let mut piece = vec![0; width];
        for block in 0..data_count {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            read(block, column, &mut piece)?;
            encoder.add_original_shard(&piece).map_err(failed)?;
        }
        let made = encoder.encode().map_err(failed)?;
        for (block, piece) in made.recovery_iter().enumerate() {
            write(block as u32, column, piece)?;
        }
        drop(made);
        progress.advance(0, u64::from(data_count) * width as u64, 0);
        // Its memory is reused for the next column.
        *work = Some(encoder.into_parts().1);
        Ok(())
    };
    ordered::in_order(jobs, columns, progress, || None, work, &mut |_, ()| Ok(()))
}

pub(super) struct IntactBlocks {
    pub(super) data_count: u32,
    pub(super) recovery_count: u32,
    /// True for each lost block of the image.
    pub(super) lost: Vec<bool>,
    /// Intact recovery blocks, as many as there are lost blocks.
    pub(super) recovery: Vec<u32>,
}

/// `read` provides pieces of intact blocks of the image (`true`) or of recovery data, `write`
/// receives those of lost blocks.
pub(super) fn decode(
    left: &IntactBlocks,
    columns: impl Iterator<Item = Result<Range<u32>>> + Send,
    jobs: usize,
    progress: &dyn Progress,
    read: &ReadIntact<'_>,
    write: &Write<'_>,
) -> Result<()> {
    let work = |work: &mut Option<_>, column: &Range<u32>| {
        let width = column.len();
        let (data, recovery) = (left.data_count as usize, left.recovery_count as usize);
        let mut decoder =
            HighRateDecoder::new(data, recovery, width, DefaultEngine::new(), work.take()).map_err(failed)?;
        let mut piece = vec![0; width];
        for block in (0..left.data_count).filter(|block| !left.lost[*block as usize]) {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            read(true, block, column, &mut piece)?;
            decoder.add_original_shard(block as usize, &piece).map_err(failed)?;
        }
        for block in &left.recovery {
            read(false, *block, column, &mut piece)?;
            decoder.add_recovery_shard(*block as usize, &piece).map_err(failed)?;
        }
        let made = decoder.decode().map_err(failed)?;
        for (block, piece) in made.restored_original_iter() {
            write(block as u32, column, piece)?;
        }
        drop(made);
        progress.advance(0, u64::from(left.data_count) * width as u64, 0);
        *work = Some(decoder.into_parts().1);
        Ok(())
    };
    ordered::in_order(jobs, columns, progress, || None, work, &mut |_, ()| Ok(()))
}

/// There are as many recovery pieces as pieces, all of one length.
pub(super) fn encode_pieces(pieces: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let len = pieces.first().map_or(0, Vec::len);
    let mut encoder =
        HighRateEncoder::new(pieces.len(), pieces.len(), len, DefaultEngine::new(), None).map_err(failed)?;
    for piece in pieces {
        encoder.add_original_shard(piece).map_err(failed)?;
    }
    let made = encoder.encode().map_err(failed)?;
    Ok(made.recovery_iter().map(<[u8]>::to_vec).collect())
}

/// Recovery pieces come last; `None` if too few pieces are left.
pub(super) fn decode_pieces(pieces: &[Option<Vec<u8>>]) -> Option<Vec<Vec<u8>>> {
    let count = pieces.len() / 2;
    if pieces.iter().flatten().count() < count {
        return None;
    }
    let len = pieces.iter().flatten().next()?.len();
    let mut decoder = HighRateDecoder::new(count, count, len, DefaultEngine::new(), None).ok()?;
    for (index, piece) in pieces.iter().enumerate() {
        let Some(piece) = piece else { continue };
        match index.checked_sub(count) {
            None => decoder.add_original_shard(index, piece).ok()?,
            Some(index) => decoder.add_recovery_shard(index, piece).ok()?,
        }
    }
    let made = decoder.decode().ok()?;
    let piece = |index: usize| match &pieces[index] {
        Some(piece) => Some(piece.clone()),
        None => made.restored_original(index).map(<[u8]>::to_vec),
    };
    (0..count).map(piece).collect()
}

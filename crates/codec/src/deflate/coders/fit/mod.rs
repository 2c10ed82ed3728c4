//! Filling an output with raw DEFLATE in one encode.
//!
//! A stream is a sequence of blocks with separate codes. libdeflate encodes somewhat more input
//! than will fit; all blocks that end within the space are copied bit for bit, and the block that
//! crosses its end is rewritten by [`tail`]: its parse is cut where it fits, and only the entropy
//! codes are recomputed.

mod bits;
mod block;
mod huffman;
mod symbols;
mod tail;

use super::{STORED_PADDING_BIT, ffi};
use crate::{EncodeError, Fit, FitEncoder};
use block::{Block, BlockReader, Body};

/// Initial input length, as a multiple of the space.
const FIRST_GUESS: usize = 3;

/// Encodes raw streams of a fixed length with libdeflate's parse.
pub(crate) struct RawFit {
    compressor: Option<ffi::Compressor>,
    whole: Vec<u8>,
    reader: BlockReader,
    tail: tail::Tail,
    /// The last fit limited by the space, not by the input.
    last: Option<Fit>,
}

impl RawFit {
    /// `level` is 0 to 12.
    pub(crate) fn new(level: u8) -> RawFit {
        RawFit {
            compressor: ffi::Compressor::new(level),
            whole: Vec::new(),
            reader: BlockReader::default(),
            tail: tail::Tail::default(),
            last: None,
        }
    }

    fn guess(&self, room: usize) -> usize {
        match self.last {
            Some(last) => more_than_fits(last, room),
            None => room.saturating_mul(FIRST_GUESS),
        }
    }

    /// Encodes all of `src` into `whole`; returns the length.
    fn encode(&mut self, src: &[u8]) -> Result<usize, EncodeError> {
        let compressor = self.compressor.as_mut().ok_or(EncodeError::OutOfMemory)?;
        let bound = compressor.raw_bound(src.len());
        if self.whole.len() < bound {
            self.whole.resize(bound, 0);
        }
        compressor
            .raw(src, &mut self.whole)?
            .ok_or(EncodeError::Internal("libdeflate exceeded its own bound"))
    }

    /// Copies the part of `whole`, which encodes `src` and is longer than `dst`, that fits.
    fn cut(&mut self, src: &[u8], whole: &[u8], dst: &mut [u8]) -> Fit {
        let room_bits = dst.len() * 8;
        self.reader.begin();
        let mut last_whole: Option<Block> = None;
        while let Some(block) = self.reader.next(whole) {
            if block.end_bit <= room_bits {
                last_whole = Some(block);
                continue;
            }
            let plain = &src[block.plain_start..];
            let tail = match block.body {
                Body::Stored => self.tail.fit_stored(plain, block.plain_len, block.start_bit, room_bits),
                Body::Tokens => self.tail.fit_tokens(self.reader.tokens(), block.start_bit, room_bits),
            };
            if let Some(plain_len) = tail {
                dst[..block.start_bit.div_ceil(8)].copy_from_slice(&whole[..block.start_bit.div_ceil(8)]);
                let written = match block.body {
                    Body::Stored => tail::write_stored(&plain[..plain_len], block.start_bit, dst),
                    Body::Tokens => self.tail.write_tokens(self.reader.tokens(), block.start_bit, dst),
                };
                return Fit { consumed: block.plain_start + plain_len, written };
            }
            break;
        }
        let Some(block) = last_whole else { return Fit::default() };
        let written = block.end_bit.div_ceil(8);
        dst[..written].copy_from_slice(&whole[..written]);
        bits::end_after(dst, block.start_bit, block.end_bit);
        Fit { consumed: block.plain_start + block.plain_len, written }
    }
}

/// Returns somewhat more input than would fit into `room` at the ratio of `last`.
fn more_than_fits(last: Fit, room: usize) -> usize {
    let like = (last.consumed as u64).saturating_mul(room as u64) / (last.written.max(1) as u64);
    usize::try_from(like + like / 8 + 256).unwrap_or(usize::MAX)
}

impl FitEncoder for RawFit {
    fn begin_segment(&mut self) {
        self.last = None;
    }

    fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        if src.is_empty() || dst.is_empty() {
            return Ok(Fit::default());
        }
        let mut offered = self.guess(dst.len());
        let fit = loop {
            offered = offered.min(src.len());
            let whole_len = self.encode(&src[..offered])?;
            if whole_len > dst.len() {
                let whole = std::mem::take(&mut self.whole);
                let fit = self.cut(&src[..offered], &whole[..whole_len], dst);
                self.whole = whole;
                self.last = Some(fit).filter(|fit| fit.written > 0);
                break fit;
            }
            if offered == src.len() {
                dst[..whole_len].copy_from_slice(&self.whole[..whole_len]);
                break Fit { consumed: offered, written: whole_len };
            }
            let like = more_than_fits(Fit { consumed: offered, written: whole_len }, dst.len());
            offered = like.clamp(offered + offered / 8, offered.saturating_mul(16));
        };
        begin_with_no_zero(dst);
        Ok(fit)
    }

    fn shorten(&mut self, src: &[u8], whole: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        if src.is_empty() || dst.is_empty() {
            return Ok(Fit::default());
        }
        let fit = self.cut(src, whole, dst);
        begin_with_no_zero(dst);
        Ok(fit)
    }
}

fn begin_with_no_zero(dst: &mut [u8]) {
    if let Some(first @ 0) = dst.first_mut() {
        *first = STORED_PADDING_BIT;
    }
}

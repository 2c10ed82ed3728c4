//! LZO1X as an [`Encoder`] and a [`Decoder`].

use super::{Compressor, LzoError, decode};
use crate::{DecodeError, Decoder, EncodeError, Encoder};

impl Encoder for Compressor {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        Ok(Compressor::compress(self, src, dst))
    }
}

pub(super) struct Decompressor;

impl Decoder for Decompressor {
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        decode::decompress(src, dst).map_err(decode_error)
    }

    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        decode::decompress_prefix(src, dst).map_err(decode_error)
    }
}

/// Drops the offsets: blocks are small, and the caller names the block.
pub(super) fn decode_error(error: LzoError) -> DecodeError {
    match error {
        LzoError::OutputOverrun { .. } => DecodeError::TooLong,
        LzoError::InputOverrun { .. } => DecodeError::Corrupt("LZO stream ends too early"),
        LzoError::MissingEndMarker { .. } => DecodeError::Corrupt("LZO stream has no end marker"),
        LzoError::LookbehindOverrun { .. } => DecodeError::Corrupt("LZO match before the start of the block"),
        LzoError::BadEndMarker { .. } => DecodeError::Corrupt("damaged end marker of an LZO stream"),
        LzoError::TrailingBytes { .. } => DecodeError::Corrupt("bytes after the end of the LZO stream"),
        LzoError::RunLengthStream => DecodeError::Corrupt("LZO-RLE stream, which is another format"),
    }
}

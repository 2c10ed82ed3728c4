//! LZO1X behind the traits of this crate.

use crate::LzoVariant;

use crate::lzo::{self, LzoError};
use crate::{DecodeError, Decoder, EncodeError, Encoder};

/// Encodes LZO1X blocks.
pub(crate) struct LzoEncoder(lzo::Compressor);

impl LzoEncoder {
    /// `level` is 1 to 9 for the 999 variant, any for the others.
    pub(crate) fn new(variant: LzoVariant, level: u8) -> LzoEncoder {
        LzoEncoder(lzo::Compressor::new(variant, level))
    }
}

impl Encoder for LzoEncoder {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        Ok(self.0.compress(src, dst))
    }
}

/// Decodes LZO1X blocks.
pub(crate) struct LzoDecoder;

impl Decoder for LzoDecoder {
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        lzo::decompress(src, dst).map_err(decode_error)
    }

    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        lzo::decompress_prefix(src, dst).map_err(decode_error)
    }
}

/// Drops the offsets: blocks are small, and a caller that names the block has said where.
fn decode_error(error: LzoError) -> DecodeError {
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

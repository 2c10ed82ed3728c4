//! LZO1X behind the traits of this crate.

use packfs_core::codec::LzoVariant;

use crate::{DecodeError, Decoder, EncodeError, Encoder, lzo};

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
        lzo::decompress(src, dst).map_err(|_| DecodeError::Corrupt("damaged LZO block"))
    }
}

//! Decoders by algorithm, and the set of decoders of a thread.

use crate::codec::Decoding;
use crate::table::CODECS;
use crate::{Algorithm, BlockRef, DecodeError, DecodedLen, Decoder};

/// Returns a decoder.
pub fn decoder(algorithm: Algorithm) -> Box<dyn Decoder> {
    (decoding(algorithm).decoder)()
}

impl Algorithm {
    /// True if a prefix of a block decodes as fast per byte as the whole.
    pub fn has_fast_prefix(self) -> bool {
        decoding(self).has_fast_prefix
    }

    /// True if a block states where it ends; others decode to a given length only.
    pub fn tells_end(self) -> bool {
        decoding(self).tells_end
    }
}

fn decoding(algorithm: Algorithm) -> &'static Decoding {
    let mut rows = CODECS.iter().flat_map(|codec| codec.decoding);
    rows.find(|row| row.algorithm == algorithm).unwrap_or_else(|| unreachable!("every algorithm has a row"))
}

/// Decoders of one thread, each created on first use.
#[derive(Default)]
pub struct Decoders {
    made: [Option<Box<dyn Decoder>>; Algorithm::ALL.len()],
}

impl Decoders {
    /// Returns an empty set.
    pub fn new() -> Decoders {
        Decoders::default()
    }

    /// Decodes one block of `algorithm`, as [`Decoder::decompress`] does.
    ///
    /// # Errors
    /// Those of [`Decoder::decompress`].
    pub fn decompress(
        &mut self,
        algorithm: Algorithm,
        src: &[u8],
        dst: &mut [u8],
    ) -> Result<usize, DecodeError> {
        self.of(algorithm).decompress(src, dst)
    }

    /// Decodes a prefix of one block of `algorithm`, as [`Decoder::decompress_prefix`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Decoder::decompress_prefix`].
    pub fn decompress_prefix(
        &mut self,
        algorithm: Algorithm,
        src: &[u8],
        dst: &mut [u8],
    ) -> Result<usize, DecodeError> {
        self.of(algorithm).decompress_prefix(src, dst)
    }

    /// Decodes a block of `algorithm` as `block` describes it: without leading zeros if it is
    /// padded, and up to the prefix if only one is requested. Returns the decoded length.
    ///
    /// # Errors
    ///
    /// Those of [`Decoder::decompress`] and [`Decoder::decompress_prefix`]; the caller must detect
    /// a wrong length ([`BlockRef::allows_len`]).
    pub fn decompress_block(
        &mut self,
        algorithm: Algorithm,
        block: &BlockRef,
        stored: &[u8],
        dst: &mut [u8],
    ) -> Result<usize, DecodeError> {
        let src = if block.zero_padded { without_padding(stored) } else { stored };
        match block.decodes_to {
            DecodedLen::Prefix => self.decompress_prefix(algorithm, src, dst),
            DecodedLen::Exactly | DecodedLen::AtMost => self.decompress(algorithm, src, dst),
        }
    }

    fn of(&mut self, algorithm: Algorithm) -> &mut dyn Decoder {
        self.made[algorithm as usize].get_or_insert_with(|| decoder(algorithm)).as_mut()
    }
}

/// Skips the zeros before a block; padding is shorter than a disk block, and usually shorter than a
/// word or two.
pub fn without_padding(stored: &[u8]) -> &[u8] {
    let padding_len = stored.iter().position(|&byte| byte != 0).unwrap_or(stored.len());
    &stored[padding_len..]
}

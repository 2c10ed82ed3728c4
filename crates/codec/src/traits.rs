//! Traits of coders: encoders, decoders, and encoders that fill an output of fixed length.

use crate::{BranchSet, DecodeError, EncodeError};

/// Compresses blocks with fixed settings. One per thread: it owns the codec's scratch memory and
/// contexts, reused for every block.
pub trait Encoder: Send {
    /// Compresses all of `src` into `dst`. Returns the length if the result fits, else `None`:
    /// callers pass `dst[..src.len() - 1]` to require that the block shrinks, and store it
    /// otherwise. A result within a few bytes of `dst.len()` may count as not fitting. The contents
    /// of `dst` after `None` or an error are unspecified.
    ///
    /// # Errors
    ///
    /// Out of memory, or an internal error of a codec; never because of the contents of the block.
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError>;

    /// Announces the code in the following blocks; without it every filter of the settings is
    /// tried.
    fn expect_code(&mut self, _branches: BranchSet) {}
}

/// Decompresses blocks of one algorithm. One per thread, as for [`Encoder`].
pub trait Decoder: Send {
    /// Decodes the one block that fills `src`; the decoded length is at most `dst.len()`, and
    /// exactly that for [`Algorithm::MicroLzma`](crate::Algorithm::MicroLzma), whose blocks do not
    /// state where they end. In framings of LZMA without a stated length, a few additional zeros
    /// may follow the data of a block that is shorter than `dst`. The contents of `dst` after an
    /// error are unspecified.
    ///
    /// # Errors
    ///
    /// The block is damaged, ends early, decodes to more than `dst.len()` bytes, has bytes after
    /// its end (if the framing states it), or needs more memory than any valid block.
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError>;

    /// Decodes the first `dst.len()` bytes of the block that fills `src`, and neither decodes nor
    /// checks the rest. The returned length is that of `dst`, or less if the block is shorter (an
    /// error for MicroLZMA, which cannot detect it). The contents of `dst` after an error are
    /// unspecified.
    ///
    /// # Errors
    ///
    /// The decoded part of the block is damaged, the block ends early, or it needs more memory than
    /// any valid block.
    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError>;
}

/// Fills outputs of fixed length with as much input as fits. One per thread, like an [`Encoder`].
///
/// Every stream decodes on its own to exactly the input that it consumed, and none begins with a
/// zero byte, so that formats can pad outputs with leading zeros.
pub trait FitEncoder: Send {
    /// Resets estimates from earlier inputs. Encoders may derive from them how much of the next
    /// input will fit, which may affect the result: callers that need the same bytes on every
    /// thread call this wherever work is divided.
    fn begin_segment(&mut self) {}

    /// Compresses as much of the beginning of `src` as fits into `dst`. The contents of `dst` after
    /// the written bytes are unspecified.
    ///
    /// # Errors
    ///
    /// Out of memory, or an internal error of a codec; never because of the contents of the input.
    fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError>;

    /// Announces whether [`shorten`](FitEncoder::shorten) is likely to be called in this segment:
    /// an encoder may then keep additional state.
    fn expect_shortening(&mut self, _likely: bool) {}

    /// Repeats `compress_to_fit`, which consumed all of `src` in the previous call and wrote
    /// `whole`, for a shorter `dst`. An encoder that keeps its parse, or recovers it from its
    /// output, need not search for matches again.
    ///
    /// # Errors
    ///
    /// Those of `compress_to_fit`.
    fn shorten(&mut self, src: &[u8], whole: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        let _ = whole;
        self.compress_to_fit(src, dst)
    }
}

/// Lengths of a filled output. If nothing fits, both are 0. Incompressible data may be written
/// longer than it was consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// Bytes of input that the output decodes to.
    pub consumed: usize,
    /// Bytes of output.
    pub written: usize,
}

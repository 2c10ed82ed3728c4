//! The coders of a thread: encoders, decoders, and encoders that fill an output of fixed length.

use crate::{BranchSet, DecodeError, EncodeError};

/// Compresses blocks with fixed settings. One per thread: it holds the codec's scratch memory and
/// contexts, reused for every block.
pub trait Encoder: Send {
    /// Compresses all of `src` into `dst`. Some(length) when the result fits, None when it does
    /// not: callers pass `dst[..src.len() - 1]` to mean "must shrink" and store the block
    /// otherwise. A result within a few bytes of `dst.len()` may count as not fitting. The contents
    /// of `dst` after None or an error are unspecified.
    ///
    /// # Errors
    /// Memory is short, or a codec failed inside; never because of what the block holds.
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError>;

    /// Announces the code in the blocks that follow; without it every filter of the settings is
    /// tried.
    fn expect_code(&mut self, _branches: BranchSet) {}
}

/// Decompresses blocks of one algorithm. One per thread, as for [`Encoder`].
pub trait Decoder: Send {
    /// Decodes the one block that fills all of `src`; the decoded length is at most `dst.len()`,
    /// and exactly that for [`Algorithm::MicroLzma`](crate::Algorithm::MicroLzma), whose blocks do
    /// not tell where they end. In framings of LZMA that state no length, a block that is shorter
    /// than `dst` may be followed by a few zeros that it does not hold. The contents of `dst` after
    /// an error are unspecified.
    ///
    /// # Errors
    /// The block is damaged, ends early, decodes to more than `dst.len()` bytes, has bytes after
    /// its end (where the framing tells), or asks for more memory than any block needs.
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError>;

    /// Decodes the first `dst.len()` bytes of the block that fills all of `src`, and neither
    /// decodes nor checks what follows. The length is that of `dst`, or less where the block holds
    /// less (MicroLZMA, which cannot tell, answers an error instead). The contents of `dst` after
    /// an error are unspecified.
    ///
    /// # Errors
    /// The part of the block that was decoded is damaged, the block ends early, or it asks for more
    /// memory than any block needs.
    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError>;
}

/// Fills outputs of fixed length with as much input as fits. One per thread, as an [`Encoder`].
///
/// Every stream decodes on its own to exactly the input that it consumed, and none begins with a
/// zero byte: formats that pad such outputs with zeros in front can find where they begin.
pub trait FitEncoder: Send {
    /// Forgets what earlier inputs were like. Encoders may guess from them how much of the next
    /// will fit, and the guess may show in the result: callers that need the same bytes on every
    /// thread call this wherever work is divided.
    fn begin_segment(&mut self) {}

    /// Compresses as much of the beginning of `src` as fits into `dst`. The contents of `dst` after
    /// the written bytes are unspecified.
    ///
    /// # Errors
    /// Memory is short, or a codec failed inside; never because of what the input holds.
    fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError>;

    /// Announces that [`shorten`](FitEncoder::shorten) is likely to be called in this segment, or
    /// not: an encoder may then keep what it otherwise need not.
    fn expect_shortening(&mut self, _likely: bool) {}

    /// Repeats `compress_to_fit`, which has taken all of `src` in the call before this one and
    /// written `whole`, for a shorter `dst`. An encoder that knows its parse, or finds it in what
    /// it wrote, need not search for matches again.
    ///
    /// # Errors
    /// Those of `compress_to_fit`.
    fn shorten(&mut self, src: &[u8], whole: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        let _ = whole;
        self.compress_to_fit(src, dst)
    }
}

/// Lengths of a filled output. Where nothing fits, both are 0. Data that does not shrink may be
/// written longer than it was consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// Bytes of input that the output decodes to.
    pub consumed: usize,
    /// Bytes of output.
    pub written: usize,
}

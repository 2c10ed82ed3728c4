//! The two traits, and how a thread gets its coders.

use crate::{Algorithm, BranchSet, CodecSettings};
use crate::{BlockRef, DecodedLen};

use crate::{DecodeError, EncodeError, SettingsError, deflate, lz4, lzma, lzo_glue, validate, xz, zstd};

/// Compresses blocks with fixed settings. One per thread: it holds the codec's scratch memory and contexts, reused for
/// every block.
pub trait Encoder: Send {
    /// Compresses all of `src` into `dst`. Some(length) when the result fits, None when it does not: callers pass
    /// `dst[..src.len() - 1]` to mean "must shrink" and store the block otherwise. A result within a few bytes of
    /// `dst.len()` may count as not fitting. What `dst` holds after None or an error is unspecified.
    ///
    /// # Errors
    /// Memory is short, or a codec failed inside; never because of what the block holds.
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError>;

    /// Says what is known of the code in the blocks that follow; without it every filter that was asked for is tried.
    fn expect_code(&mut self, _branches: BranchSet) {}
}

/// Decompresses blocks of one algorithm. One per thread, as for [`Encoder`].
pub trait Decoder: Send {
    /// Decodes the one block that fills all of `src`; the decoded length is at most `dst.len()`, and exactly that for
    /// [`Algorithm::MicroLzma`], whose blocks do not tell where they end. Of those framings of LZMA that state no length, a block that
    /// is shorter than `dst` may be followed by a few zeros that it does not hold. What `dst` holds after an error is unspecified.
    ///
    /// # Errors
    /// The block is damaged, ends early, decodes to more than `dst.len()` bytes, has bytes after its end (where the
    /// framing tells), or asks for more memory than any block needs.
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError>;

    /// Decodes the first `dst.len()` bytes of the block that fills all of `src`, and neither decodes nor checks what
    /// follows. The length is that of `dst`, or less where the block holds less (MicroLZMA, which cannot tell, answers
    /// an error instead). What `dst` holds after an error is unspecified.
    ///
    /// # Errors
    /// The part of the block that was decoded is damaged, the block ends early, or it asks for more memory than any
    /// block needs.
    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError>;
}

/// A new encoder.
///
/// # Errors
/// A setting is out of its range.
pub fn encoder(settings: &CodecSettings) -> Result<Box<dyn Encoder>, SettingsError> {
    validate::check(settings)?;
    Ok(match *settings {
        CodecSettings::Zlib { level, window_log: validate::WINDOW_LOG_MAX, ref strategies }
            if strategies.is_empty() =>
        {
            Box::new(deflate::FullWindow::new(level))
        }
        CodecSettings::Zlib { level, window_log, ref strategies } => {
            Box::new(deflate::Strategies::new(level, window_log, strategies))
        }
        CodecSettings::LzmaAlone { preset, extreme, dict_len } => {
            Box::new(lzma::Alone::new(preset, extreme, dict_len))
        }
        CodecSettings::Lzo { variant, level } => Box::new(lzo_glue::LzoEncoder::new(variant, level)),
        CodecSettings::Xz { preset, extreme, dict_len, ref filters } => {
            Box::new(xz::Xz::new(preset, extreme, dict_len, filters))
        }
        CodecSettings::Lz4 { acceleration } => Box::new(lz4::Fast::new(acceleration)),
        CodecSettings::Lz4Hc { level } => Box::new(lz4::High::new(level)),
        CodecSettings::Zstd { level, window_log_max } => Box::new(zstd::Frame::new(level, window_log_max)),
        CodecSettings::Deflate { level } => Box::new(deflate::Raw::new(level)),
        CodecSettings::MicroLzma { preset, extreme, dict_len } => {
            Box::new(lzma::Micro::new(preset, extreme, dict_len))
        }
    })
}

/// A new decoder.
pub fn decoder(algorithm: Algorithm) -> Box<dyn Decoder> {
    match algorithm {
        Algorithm::Zlib => Box::new(deflate::Inflate::new(deflate::Wrapper::Zlib)),
        Algorithm::LzmaAlone => Box::new(lzma::Unalone::new()),
        Algorithm::Lzo => Box::new(lzo_glue::LzoDecoder),
        Algorithm::Xz => Box::new(xz::Unxz::new()),
        Algorithm::Lz4 => Box::new(lz4::Block),
        Algorithm::Zstd => Box::new(zstd::Unframe::new()),
        Algorithm::Deflate => Box::new(deflate::Inflate::new(deflate::Wrapper::None)),
        Algorithm::MicroLzma => Box::new(lzma::Unmicro::new()),
        Algorithm::LzmaProps => Box::new(lzma::Unvendor::new(lzma::Framing::Props)),
        Algorithm::LzmaLenProps => Box::new(lzma::Unvendor::new(lzma::Framing::LenProps)),
        Algorithm::LzmaPropsLen => Box::new(lzma::Unvendor::new(lzma::Framing::PropsLen)),
        Algorithm::LzmaPbLcLp => Box::new(lzma::Unvendor::new(lzma::Framing::PbLcLp)),
        Algorithm::LzmaBare => Box::new(lzma::Unvendor::new(lzma::Framing::Bare)),
        Algorithm::Sqlzma => Box::new(lzma::Unsqlzma::new()),
    }
}

/// The decoders of one thread, each made when its algorithm is first met.
#[derive(Default)]
pub struct Decoders {
    made: [Option<Box<dyn Decoder>>; Algorithm::ALL.len()],
}

impl Decoders {
    /// No decoder made yet.
    pub fn new() -> Decoders {
        Decoders::default()
    }

    /// Decodes one block of `algorithm`, as [`Decoder::decompress`] does.
    ///
    /// # Errors
    /// As [`Decoder::decompress`].
    pub fn decompress(
        &mut self,
        algorithm: Algorithm,
        src: &[u8],
        dst: &mut [u8],
    ) -> Result<usize, DecodeError> {
        self.of(algorithm).decompress(src, dst)
    }

    /// Decodes the beginning of one block of `algorithm`, as [`Decoder::decompress_prefix`] does.
    ///
    /// # Errors
    /// As [`Decoder::decompress_prefix`].
    pub fn decompress_prefix(
        &mut self,
        algorithm: Algorithm,
        src: &[u8],
        dst: &mut [u8],
    ) -> Result<usize, DecodeError> {
        self.of(algorithm).decompress_prefix(src, dst)
    }

    /// Decodes a block of `algorithm` as `block` describes it: without the zeros in front of it, if it is padded with them, and
    /// no further than what is wanted of it, if that is a prefix. Returns how many bytes came out.
    ///
    /// # Errors
    /// As [`Decoder::decompress`] and [`Decoder::decompress_prefix`]; another length than is wanted is for the caller to tell
    /// ([`BlockRef::allows_len`]).
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

/// What is left of a block when the zeros in front of it are skipped; padding is shorter than a block of the disk, and
/// mostly shorter than a word or two.
pub fn without_padding(stored: &[u8]) -> &[u8] {
    let padding_len = stored.iter().position(|&byte| byte != 0).unwrap_or(stored.len());
    &stored[padding_len..]
}

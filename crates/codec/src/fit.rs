//! Encoding the other way round: the output has a fixed length, and as much input goes in as fits.
//!
//! Every stream decodes on its own to exactly the input that it consumed, and none begins with a zero byte: formats that
//! pad such outputs with zeros in front can find where they begin.

use crate::CodecSettings;

use crate::{EncodeError, SettingsError, deflate, lz4, lzma, validate, zstd};

/// Fills outputs with as much input as fits. One per thread, as an [`Encoder`](crate::Encoder).
pub trait FitEncoder: Send {
    /// Forgets what earlier inputs were like. Encoders may guess from them how much of the next will fit, and the guess
    /// may show in the result: whoever wants the same bytes whichever thread does the work calls this wherever work is
    /// divided.
    fn begin_segment(&mut self) {}

    /// Compresses as much of the beginning of `src` as fits into `dst`. What lies in `dst` behind the written bytes is
    /// unspecified.
    ///
    /// # Errors
    /// Memory is short, or a codec failed inside; never because of what the input holds.
    fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError>;

    /// Says whether [`shorten`](FitEncoder::shorten) is likely to be called in this segment: an encoder may then keep what
    /// it otherwise need not.
    fn expect_shortening(&mut self, _likely: bool) {}

    /// As `compress_to_fit`, which has taken all of `src` in the call before this one and written `whole`, longer than
    /// `dst`. An encoder that knows its parse, or finds it in what it wrote, need not search for matches again.
    ///
    /// # Errors
    /// As for `compress_to_fit`.
    fn shorten(&mut self, src: &[u8], whole: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        let _ = whole;
        self.compress_to_fit(src, dst)
    }
}

/// What went into an output. Where nothing fits, both are 0; nothing is said about whether it was worth it: data that
/// does not shrink may be written longer than it was consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// Bytes of input that the output decodes to.
    pub consumed: usize,
    /// Bytes of output.
    pub written: usize,
}

/// A new encoder to a fixed output: LZ4, MicroLZMA, DEFLATE or Zstandard.
///
/// # Errors
/// A setting is out of its range, or of another algorithm.
pub fn fit_encoder(settings: &CodecSettings) -> Result<Box<dyn FitEncoder>, SettingsError> {
    validate::check(settings)?;
    Ok(match *settings {
        CodecSettings::Lz4 { acceleration } => Box::new(lz4::Fast::new(acceleration)),
        CodecSettings::Lz4Hc { level } => Box::new(lz4::High::new(level)),
        CodecSettings::MicroLzma { preset, extreme, dict_len } => {
            Box::new(lzma::Micro::new(preset, extreme, dict_len))
        }
        CodecSettings::Deflate { level } => Box::new(deflate::RawFit::new(level)),
        CodecSettings::Zstd { level, window_log_max } => Box::new(zstd::FrameFit::new(level, window_log_max)),
        CodecSettings::Zlib { .. }
        | CodecSettings::LzmaAlone { .. }
        | CodecSettings::Lzo { .. }
        | CodecSettings::Xz { .. } => {
            let algorithm = settings.algorithm();
            return Err(SettingsError::new(
                "algorithm for outputs of a fixed length",
                algorithm,
                "lz4, microlzma, deflate, zstd",
            ));
        }
    })
}

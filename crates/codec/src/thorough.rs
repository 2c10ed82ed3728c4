//! Encoders that try more than one way and keep the shortest result, for images that are made once and read often.
//!
//! Bounded: a fixed list of ways for each codec, whatever the block holds. The answer depends on the block alone.

use crate::{BranchSet, CodecSettings, LzoVariant};

use crate::smallest::Smallest;
use crate::validate::WINDOW_LOG_MAX;
use crate::{EncodeError, Encoder, FitEncoder, SettingsError};
use crate::{deflate, encoder, fit_encoder, lz4, lzma, lzo_glue, validate, xz, zstd};

/// The highest level of zstd, and of libdeflate.
const ZSTD_LEVEL: i32 = 22;
const DEFLATE_LEVELS: [u8; 3] = [12, 11, 10];

/// As [`encoder`], at its codec's highest level and with all the ways that are worth a try.
///
/// # Errors
/// A setting is out of its range.
pub fn thorough_encoder(settings: &CodecSettings) -> Result<Box<dyn Encoder>, SettingsError> {
    validate::check(settings)?;
    Ok(match *settings {
        CodecSettings::Zlib { window_log: WINDOW_LOG_MAX, ref strategies, .. } if strategies.is_empty() => {
            several(DEFLATE_LEVELS.map(|level| Box::new(deflate::FullWindow::new(level)) as Box<dyn Encoder>))
        }
        CodecSettings::Xz { dict_len, ref filters, .. } => Box::new(xz::Xz::thorough(dict_len, filters)),
        CodecSettings::LzmaAlone { dict_len, .. } => several(
            lzma::PROPERTIES
                .map(|properties| Box::new(lzma::Alone::thorough(dict_len, properties)) as Box<dyn Encoder>),
        ),
        CodecSettings::Zstd { window_log_max, .. } => several(zstd::MATCH_LENS_MIN.map(|match_len_min| {
            Box::new(zstd::Frame::with_match_len_min(ZSTD_LEVEL, window_log_max, match_len_min))
                as Box<dyn Encoder>
        })),
        CodecSettings::Lz4 { .. } | CodecSettings::Lz4Hc { .. } => Box::new(lz4::High::new(12)),
        CodecSettings::Lzo { .. } => Box::new(lzo_glue::LzoEncoder::new(LzoVariant::X999, 9)),
        _ => encoder(settings)?,
    })
}

/// As [`fit_encoder`], at its codec's highest level and with all the ways that are worth a try.
///
/// # Errors
/// A setting is out of its range, or of another algorithm.
pub fn thorough_fit_encoder(settings: &CodecSettings) -> Result<Box<dyn FitEncoder>, SettingsError> {
    Ok(match *settings {
        CodecSettings::MicroLzma { dict_len, .. } => {
            validate::check(settings)?;
            Box::new(lzma::Micro::thorough(dict_len))
        }
        CodecSettings::Zstd { window_log_max, .. } => {
            fit_encoder(&CodecSettings::Zstd { level: ZSTD_LEVEL, window_log_max })?
        }
        CodecSettings::Deflate { .. } => fit_encoder(&CodecSettings::Deflate { level: DEFLATE_LEVELS[0] })?,
        CodecSettings::Lz4 { .. } | CodecSettings::Lz4Hc { .. } => {
            fit_encoder(&CodecSettings::Lz4Hc { level: 12 })?
        }
        _ => fit_encoder(settings)?,
    })
}

fn several<const N: usize>(encoders: [Box<dyn Encoder>; N]) -> Box<dyn Encoder> {
    Box::new(Several { encoders: encoders.into(), smallest: Smallest::default() })
}

/// Runs each of its encoders on every block.
struct Several {
    encoders: Vec<Box<dyn Encoder>>,
    smallest: Smallest,
}

impl Encoder for Several {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        let mut round = self.smallest.begin(dst);
        for encoder in &mut self.encoders {
            round.attempt(|out| encoder.compress(src, out))?;
        }
        Ok(round.finish())
    }

    fn expect_code(&mut self, branches: BranchSet) {
        self.encoders.iter_mut().for_each(|encoder| encoder.expect_code(branches));
    }
}

//! Encoders that fill an output with as much input as fits: by bisection over any block encoder.

use packfs_codec::{EncodeError, Encoder, SettingsError};
use packfs_core::codec::CodecSettings;

/// How much went in and came out.
pub(super) struct Fit {
    /// Bytes of input that were compressed.
    pub consumed: usize,
    /// Bytes of output.
    pub written: usize,
}

/// See the module.
pub(super) trait FitEncoder: Send {
    /// Compresses as much of the beginning of `src` as fits into `dst`; nothing fits if both figures are 0.
    fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError>;
}

struct Bisection(Box<dyn Encoder>);

/// How near the most input that fits is close enough.
const PRECISION: usize = 16;

impl FitEncoder for Bisection {
    fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        if let Some(written) = self.0.compress(src, dst)? {
            return Ok(Fit { consumed: src.len(), written });
        }
        let (mut fits, mut is_too_long) = (0, src.len());
        while is_too_long - fits > PRECISION {
            let middle = (fits + is_too_long) / 2;
            match self.0.compress(&src[..middle], dst)? {
                Some(_) => fits = middle,
                None => is_too_long = middle,
            }
        }
        match self.0.compress(&src[..fits], dst)? {
            Some(written) if fits > 0 => Ok(Fit { consumed: fits, written }),
            _ => Ok(Fit { consumed: 0, written: 0 }),
        }
    }
}

/// An encoder for these settings.
pub(super) fn fit_encoder(settings: &CodecSettings) -> Result<Box<dyn FitEncoder>, SettingsError> {
    Ok(Box::new(Bisection(packfs_codec::encoder(settings)?)))
}

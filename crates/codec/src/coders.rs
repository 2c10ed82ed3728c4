//! Coders of a codec, which a build may omit along with their library: names and settings remain
//! known, and the coders refuse.

use crate::{DecodeError, Decoder, EncodeError, Encoder, FitEncoder};

/// Coders for checked settings. Without the codec's library they refuse.
pub(crate) trait Coders {
    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(Absent)
    }

    /// Returns an encoder with the codec's highest level that tries a fixed list of parameters, so
    /// that the result depends on the block alone.
    fn thorough_encoder(&self) -> Box<dyn Encoder> {
        self.encoder()
    }

    /// Returns an encoder to outputs of a fixed length; `None` if the codec has none.
    fn fit_encoder(&self) -> Option<Box<dyn FitEncoder>> {
        None
    }

    /// Returns the thorough form of [`Coders::fit_encoder`].
    fn thorough_fit_encoder(&self) -> Option<Box<dyn FitEncoder>> {
        self.fit_encoder()
    }
}

/// Declares a module `coders` for a codec without its library: the defaults of [`Coders`], and
/// functions that return decoders.
#[allow(unused_macros)] // With every library, no codec is absent.
macro_rules! coders {
    ($($settings:ident),*; $($decoder:ident),*) => {
        mod coders {
            $(impl crate::coders::Coders for super::$settings {})*

            $(pub(crate) fn $decoder() -> Box<dyn crate::Decoder> {
                Box::new(crate::coders::Absent)
            })*
        }
    };
}
#[allow(unused_imports)]
pub(crate) use coders;

/// Pads `dst` with zeros after `len` bytes; returns its length.
#[allow(dead_code)] // Only decoders with a library need it.
pub(crate) fn completed(dst: &mut [u8], len: usize) -> usize {
    dst[len..].fill(0);
    dst.len()
}

pub(crate) struct Absent;

impl Encoder for Absent {
    fn compress(&mut self, _: &[u8], _: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        Err(EncodeError::Internal("this build was made without the codec"))
    }
}

impl Decoder for Absent {
    fn decompress(&mut self, _: &[u8], _: &mut [u8]) -> Result<usize, DecodeError> {
        Err(DecodeError::Absent)
    }

    fn decompress_prefix(&mut self, _: &[u8], _: &mut [u8]) -> Result<usize, DecodeError> {
        Err(DecodeError::Absent)
    }
}

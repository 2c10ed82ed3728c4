//! Coders of LZ4: our own decoder, encoders of liblz4, and our own for the highest levels.

mod decode;
#[allow(unsafe_code)]
pub(crate) mod ffi;
mod high;

use std::ffi::c_int;

use crate::{DecodeError, Decoder, EncodeError, Encoder, Fit, FitEncoder};

use decode::{Fault, decode};

use super::settings::LEVEL_MAX;
use super::{Lz4HcSettings, Lz4Settings};
use crate::coders::Coders;

struct Fast {
    state: ffi::FastState,
    acceleration: c_int,
}

impl Fast {
    /// `acceleration` is 1 to 65,537.
    fn new(acceleration: u32) -> Fast {
        Fast {
            state: ffi::FastState::new(),
            acceleration: c_int::try_from(acceleration).unwrap_or(c_int::MAX),
        }
    }
}

impl Encoder for Fast {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        Ok(self.state.compress(src, dst, self.acceleration))
    }
}

impl FitEncoder for Fast {
    fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        Ok(self.state.compress_to_fit(src, dst, self.acceleration))
    }
}

/// Lowest level of our own encoder; below it liblz4 is faster.
const OWN_LEVEL_MIN: u8 = 11;

struct High(Effort);

enum Effort {
    Low { state: ffi::HighState, level: c_int },
    High(Box<high::High>),
}

impl High {
    /// `level` is 0 to 12.
    fn new(level: u8) -> High {
        High(match level {
            OWN_LEVEL_MIN.. => Effort::High(Box::new(high::High::new(level))),
            _ => Effort::Low { state: ffi::HighState::new(), level: c_int::from(level) },
        })
    }
}

impl Encoder for High {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        Ok(match &mut self.0 {
            Effort::Low { state, level } => state.compress(src, dst, *level),
            Effort::High(encoder) => encoder.compress(src, dst),
        })
    }
}

impl FitEncoder for High {
    fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        Ok(match &mut self.0 {
            Effort::Low { state, level } => state.compress_to_fit(src, dst, *level),
            Effort::High(encoder) => encoder.compress_to_fit(src, dst),
        })
    }

    fn shorten(&mut self, src: &[u8], whole: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        let _ = whole;
        Ok(match &mut self.0 {
            Effort::Low { state, level } => state.compress_to_fit(src, dst, *level),
            Effort::High(encoder) => encoder.shorten(src, dst),
        })
    }
}

/// Decodes raw blocks. The format does not distinguish damaged blocks from too long ones.
struct Block;

impl Decoder for Block {
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        let damaged = "damaged LZ4 block, or one that decodes to too many bytes";
        decode(src, dst, false).map_err(|fault| fault.or(damaged))
    }

    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        decode(src, dst, true).map_err(|fault| fault.or("damaged LZ4 block"))
    }
}

impl Fault {
    fn or(self, damaged: &'static str) -> DecodeError {
        DecodeError::Corrupt(match self {
            Fault::Damaged => damaged,
            Fault::NoDistance => "an LZ4 match with the distance 0",
        })
    }
}

pub(super) fn decoder() -> Box<dyn Decoder> {
    Box::new(Block)
}

impl Coders for Lz4Settings {
    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(Fast::new(self.acceleration))
    }

    fn thorough_encoder(&self) -> Box<dyn Encoder> {
        Box::new(High::new(LEVEL_MAX))
    }

    fn fit_encoder(&self) -> Option<Box<dyn FitEncoder>> {
        Some(Box::new(Fast::new(self.acceleration)))
    }

    fn thorough_fit_encoder(&self) -> Option<Box<dyn FitEncoder>> {
        Some(Box::new(High::new(LEVEL_MAX)))
    }
}

impl Coders for Lz4HcSettings {
    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(High::new(self.level))
    }

    fn thorough_encoder(&self) -> Box<dyn Encoder> {
        Box::new(High::new(LEVEL_MAX))
    }

    fn fit_encoder(&self) -> Option<Box<dyn FitEncoder>> {
        Some(Box::new(High::new(self.level)))
    }

    fn thorough_fit_encoder(&self) -> Option<Box<dyn FitEncoder>> {
        Some(Box::new(High::new(LEVEL_MAX)))
    }
}

//! Encoders of LZMA1 by liblzma, which xz shares.

#[allow(unsafe_code)]
pub(crate) mod ffi;
mod micro;

use super::settings::LZMA_DICT_LEN_MIN;
use super::{HEADER_LEN, LzmaFraming, LzmaSettings};
use crate::coders::Coders;
use crate::smallest::several;
use crate::{EncodeError, Encoder, FitEncoder};
use ffi::{Outcome, Parameters, Stream};
use micro::Micro;

/// Promising numbers of literal context bits, literal position bits, and position bits: the default
/// first, then those for text, for code without a fixed instruction length, and for tables of
/// words. Their first two add up to at most four, the limit of kernels.
pub(crate) const PROPERTIES: [(u32, u32, u32); 4] = [(3, 0, 2), (4, 0, 0), (2, 0, 0), (0, 2, 2)];

/// Dictionary for one block: its length, at least `dict_len_min`, at most `dict_len_max`. For a
/// small block (metadata, the tail of a file), this avoids clearing tables for a large one.
pub(crate) fn dict_len_for(src_len: usize, dict_len_min: u32, dict_len_max: u32) -> u32 {
    let needed = u32::try_from(src_len).ok().and_then(u32::checked_next_power_of_two).unwrap_or(u32::MAX);
    needed.max(dict_len_min).min(dict_len_max)
}

/// Returns the error of an encoder that stopped for another reason than a full destination.
pub(crate) fn encode_error(outcome: Outcome) -> EncodeError {
    match outcome {
        Outcome::OutOfMemory => EncodeError::OutOfMemory,
        Outcome::Options => EncodeError::Internal("liblzma does not know these options"),
        _ => EncodeError::Internal("liblzma refused to encode"),
    }
}

/// Runs a started encoder; `None` if its result does not fit.
pub(crate) fn encode(stream: &mut Stream, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
    let run = stream.run(src, dst);
    match run.outcome {
        Outcome::End => Ok(Some(run.dst_len)),
        Outcome::NoProgress => Ok(None),
        outcome => Err(encode_error(outcome)),
    }
}

pub(crate) struct Alone {
    stream: Stream,
    parameters: Option<Parameters>,
    dict_len: u32,
}

impl Alone {
    /// `preset` is 0 to 9; headers must be able to represent `dict_len`.
    pub(crate) fn new(preset: u8, extreme: bool, dict_len: u32) -> Alone {
        Alone { stream: Stream::new(), parameters: Parameters::new(preset, extreme, dict_len), dict_len }
    }

    /// The slowest form, with these properties.
    pub(crate) fn thorough(dict_len: u32, properties: (u32, u32, u32)) -> Alone {
        let parameters = Parameters::thorough(dict_len).map(|found| found.with_properties(properties));
        Alone { stream: Stream::new(), parameters, dict_len }
    }
}

impl Encoder for Alone {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        let Some((header, body)) = dst.split_first_chunk_mut::<HEADER_LEN>() else { return Ok(None) };
        let dict_len = dict_len_for(src.len(), LZMA_DICT_LEN_MIN, self.dict_len);
        let parameters = self.parameters.ok_or(encode_error(Outcome::Options))?;
        let mut parameters = parameters.with_dict_len(dict_len);
        self.stream.start_lzma1_encoder(&mut parameters).map_err(encode_error)?;
        let Some(body_len) = encode(&mut self.stream, src, body)? else { return Ok(None) };
        header[0] = parameters.properties();
        header[1..5].copy_from_slice(&dict_len.to_le_bytes());
        header[5..].copy_from_slice(&(src.len() as u64).to_le_bytes());
        Ok(Some(HEADER_LEN + body_len))
    }
}

impl Coders for LzmaSettings {
    fn encoder(&self) -> Box<dyn Encoder> {
        match self.framing {
            LzmaFraming::Alone => Box::new(Alone::new(self.preset, self.extreme, self.dict_len)),
            LzmaFraming::Micro => Box::new(Micro::new(self.preset, self.extreme, self.dict_len)),
        }
    }

    fn thorough_encoder(&self) -> Box<dyn Encoder> {
        match self.framing {
            LzmaFraming::Alone => {
                several(PROPERTIES.map(|found| Box::new(Alone::thorough(self.dict_len, found)) as _))
            }
            LzmaFraming::Micro => self.encoder(),
        }
    }

    fn fit_encoder(&self) -> Option<Box<dyn FitEncoder>> {
        match self.framing {
            LzmaFraming::Alone => None,
            LzmaFraming::Micro => Some(Box::new(Micro::new(self.preset, self.extreme, self.dict_len))),
        }
    }

    fn thorough_fit_encoder(&self) -> Option<Box<dyn FitEncoder>> {
        match self.framing {
            LzmaFraming::Alone => None,
            LzmaFraming::Micro => Some(Box::new(Micro::thorough(self.dict_len))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionary_covers_the_block_within_its_bounds() {
        assert_eq!(dict_len_for(1, 8192, 1 << 17), 8192);
        assert_eq!(dict_len_for(8193, 8192, 1 << 17), 16384);
        assert_eq!(dict_len_for(100_000, 8192, 3 << 15), 3 << 15);
        assert_eq!(dict_len_for(usize::MAX, 8192, 1 << 20), 1 << 20);
    }
}

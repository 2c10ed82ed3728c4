//! MicroLZMA: LZMA1 without a header, for outputs of a fixed length.
//!
//! A block is the properties byte with all bits inverted, then the LZMA1 stream without its first byte, which is always
//! zero, and without end marker. As the properties are at most 224, no block begins with a zero byte. A block states
//! neither its dictionary nor any length: whoever decodes it knows both lengths, and never looks back further than the
//! beginning of what it decodes to.

use super::ffi::{Outcome, Parameters, Stream};
use super::{
    DICT_LEN_MAX, LZMA_DICT_LEN_MIN, decode, decode_prefix, dict_len_for, encode_error, start_error,
};
use crate::{DecodeError, Decoder, EncodeError, Encoder, Fit, FitEncoder};

/// The shortest destination that the encoder takes: properties and the five bytes of an empty stream.
const DST_LEN_MIN: usize = 6;

/// Encodes MicroLZMA blocks.
pub(crate) struct Micro {
    stream: Stream,
    parameters: Option<Parameters>,
    dict_len: u32,
}

impl Micro {
    /// `preset` is 0 to 9, `dict_len` at least [`LZMA_DICT_LEN_MIN`].
    pub(crate) fn new(preset: u8, extreme: bool, dict_len: u32) -> Micro {
        Micro { stream: Stream::new(), parameters: Parameters::new(preset, extreme, dict_len), dict_len }
    }
}

impl Encoder for Micro {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        let fit = self.compress_to_fit(src, dst)?;
        Ok((fit.written > 0 && fit.consumed == src.len()).then_some(fit.written))
    }
}

impl FitEncoder for Micro {
    fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        if dst.len() < DST_LEN_MIN {
            return Ok(Fit::default());
        }
        let parameters = self.parameters.ok_or(encode_error(Outcome::Options))?;
        let mut parameters =
            parameters.with_dict_len(dict_len_for(src.len(), LZMA_DICT_LEN_MIN, self.dict_len));
        self.stream.start_micro_encoder(&mut parameters).map_err(encode_error)?;
        let run = self.stream.run(src, dst);
        match run.outcome {
            Outcome::End if run.src_len == 0 => Ok(Fit::default()),
            Outcome::End => Ok(Fit { consumed: run.src_len, written: run.dst_len }),
            outcome => Err(encode_error(outcome)),
        }
    }
}

/// Decodes MicroLZMA blocks.
pub(crate) struct Unmicro(Stream);

impl Unmicro {
    pub(crate) fn new() -> Unmicro {
        Unmicro(Stream::new())
    }

    /// Prepares for a block; `exact` says that it decodes to exactly `dst_len` bytes, not at least to so many.
    fn start(&mut self, src_len: usize, dst_len: usize, exact: bool) -> Result<(), DecodeError> {
        let dict_len = dict_len_for(dst_len, LZMA_DICT_LEN_MIN, DICT_LEN_MAX);
        self.0.start_micro_decoder(src_len as u64, dst_len as u64, exact, dict_len).map_err(start_error)
    }
}

impl Decoder for Unmicro {
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        self.start(src.len(), dst.len(), true)?;
        decode(&mut self.0, src, dst)
    }

    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        self.start(src.len(), dst.len(), false)?;
        decode_prefix(&mut self.0, src, dst)
    }
}

//! MicroLZMA: LZMA1 without a header, for outputs of a fixed length.
//!
//! A block is the properties byte with all bits inverted, then the LZMA1 stream without its first
//! byte, which is always zero, and without end marker. As the properties are at most 224, no block
//! begins with a zero byte. A block states neither its dictionary nor any length: its decoder knows
//! both lengths, and never refers to bytes before the start of the output.

use super::decode::{Finish, Properties, RangeDecoder, State, Stop, Window};
use super::{DAMAGED, TOO_SHORT, UNKNOWN_OPTIONS, stream_error};
use crate::{DecodeError, Decoder};

pub(crate) struct Unmicro(State);

impl Unmicro {
    pub(crate) fn new() -> Unmicro {
        Unmicro(State::new())
    }

    /// Decodes exactly `dst`; with `cut`, ignores what follows.
    fn decode<'a>(
        &mut self,
        src: &'a [u8],
        dst: &mut [u8],
        cut: bool,
    ) -> Result<RangeDecoder<'a>, DecodeError> {
        let (&properties, stream) = src.split_first().ok_or(TOO_SHORT)?;
        self.0.reset(Properties::new(!properties).ok_or(UNKNOWN_OPTIONS)?);
        let mut rc = RangeDecoder::without_zero(stream).map_err(stream_error)?;
        let limit = dst.len();
        let mut window = Window { dst, len: 0, limit, dict_len: usize::MAX, cut };
        match self.0.decode(&mut rc, &mut window).map_err(stream_error)? {
            Stop::Limit => Ok(rc),
            Stop::Marker => Err(DAMAGED),
        }
    }
}

impl Decoder for Unmicro {
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        match self.decode(src, dst, false)?.finish().map_err(stream_error)? {
            Finish::AtEnd => Ok(dst.len()),
            Finish::Before | Finish::No => Err(DAMAGED),
        }
    }

    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        if dst.is_empty() {
            return Ok(0);
        }
        self.decode(src, dst, true)?;
        Ok(dst.len())
    }
}

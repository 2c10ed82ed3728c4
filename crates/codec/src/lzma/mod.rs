//! LZMA1 in the `.lzma` ("alone") container, as MicroLZMA and as device makers framed it, and the
//! parts of liblzma that xz shares.
//!
//! A block is a 13-byte header (properties byte, dictionary length in 4 bytes, decoded length in 8
//! bytes, all little-endian) and the LZMA1 stream. The header states the real length, so the
//! encoder writes no end marker; the decoder takes both, and a header that leaves the length open
//! (all ones).

pub(crate) mod decode;
#[allow(unsafe_code)]
pub(crate) mod ffi;
mod micro;
mod settings;
mod vendor;

use crate::{DICT_LEN_MAX, DecodeError, Decoder, EncodeError, Encoder};
use decode::{Fault, Finish, Properties, RangeDecoder, State, Stop, Window, reach};
use ffi::{Outcome, Parameters, Stream};

use micro::{Micro, Unmicro};
pub(crate) use settings::{LZMA, encoder_memory, print_preset};
pub use settings::{LzmaFraming, LzmaSettings};
use vendor::{Framing, Unsqlzma, Unvendor};

/// The smallest dictionary of LZMA1 (`LZMA_DICT_SIZE_MIN`).
pub(crate) const LZMA_DICT_LEN_MIN: u32 = 4096;

const HEADER_LEN: usize = 13;

/// Numbers of literal context bits, literal position bits and position bits that are worth a try:
/// the usual ones first, then those for text, for code whose instructions have no fixed length, and
/// for tables of words. Their first two add up to at most four, which is what kernels decode.
pub(crate) const PROPERTIES: [(u32, u32, u32); 4] = [(3, 0, 2), (4, 0, 0), (2, 0, 0), (0, 2, 2)];

/// The dictionary for one block: large enough for all of it, at least `dict_len_min`, at most
/// `dict_len_max`. A small block (metadata, the tail of a file) is spared the clearing of tables
/// sized for a large one.
pub(crate) fn dict_len_for(src_len: usize, dict_len_min: u32, dict_len_max: u32) -> u32 {
    let needed = u32::try_from(src_len).ok().and_then(u32::checked_next_power_of_two).unwrap_or(u32::MAX);
    needed.max(dict_len_min).min(dict_len_max)
}

/// The error for an encoder that stopped in any other way than by a full destination.
pub(crate) fn encode_error(outcome: Outcome) -> EncodeError {
    match outcome {
        Outcome::OutOfMemory => EncodeError::OutOfMemory,
        Outcome::Options => EncodeError::Internal("liblzma does not know these options"),
        _ => EncodeError::Internal("liblzma refused to encode"),
    }
}

/// Runs a started encoder; None when its result does not fit.
pub(crate) fn encode(stream: &mut Stream, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
    let run = stream.run(src, dst);
    match run.outcome {
        Outcome::End => Ok(Some(run.dst_len)),
        Outcome::NoProgress => Ok(None),
        outcome => Err(encode_error(outcome)),
    }
}

pub(crate) const TOO_SHORT: DecodeError = DecodeError::Corrupt("LZMA stream ends too early");
pub(crate) const NO_HEADER: DecodeError = DecodeError::Corrupt("no header of an LZMA stream");
pub(crate) const UNKNOWN_OPTIONS: DecodeError = DecodeError::Corrupt("LZMA stream with unknown options");
pub(crate) const DAMAGED: DecodeError = DecodeError::Corrupt("damaged LZMA stream");
pub(crate) const TRAILING: DecodeError = DecodeError::Corrupt("bytes after the end of the LZMA stream");

/// Encodes `.lzma` blocks.
pub(crate) struct Alone {
    stream: Stream,
    parameters: Option<Parameters>,
    dict_len: u32,
}

impl Alone {
    /// `preset` is 0 to 9, `dict_len` one that headers can express.
    pub(crate) fn new(preset: u8, extreme: bool, dict_len: u32) -> Alone {
        Alone { stream: Stream::new(), parameters: Parameters::new(preset, extreme, dict_len), dict_len }
    }

    /// At its slowest, with these properties.
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

/// Decodes `.lzma` blocks.
pub(crate) struct Unalone(State);

impl Unalone {
    pub(crate) fn new() -> Unalone {
        Unalone(State::new())
    }

    /// Decodes the stream of a header whose length is `stated`, if it states one. If `prefix`,
    /// stops as soon as `dst` is full.
    fn decode(&mut self, block: &Block<'_>, dst: &mut [u8], prefix: bool) -> Result<usize, DecodeError> {
        self.0.reset(block.properties);
        let room = dst.len();
        let limit = block.len.map_or(room, |len| usize::try_from(len).map_or(room, |len| len.min(room)));
        let cut = prefix && limit == room;
        let mut window = Window { dst, len: 0, limit, dict_len: reach(block.dict_len), cut };
        let mut rc = RangeDecoder::new(block.stream).map_err(stream_error)?;
        match self.0.decode(&mut rc, &mut window).map_err(|fault| match fault {
            // A copy beyond the end of a destination that nothing was stated of.
            Fault::Overlong if block.len.is_none() => DecodeError::TooLong,
            fault => stream_error(fault),
        })? {
            Stop::Limit if cut => return Ok(limit),
            Stop::Marker if block.len.is_some() => return Err(DAMAGED),
            Stop::Marker => {}
            // With its length stated, a stream may have an end marker or not.
            Stop::Limit if block.len.is_some() && rc.finish().map_err(stream_error)? != Finish::No => {
                return if rc.is_at_end() { Ok(limit) } else { Err(TRAILING) };
            }
            Stop::Limit if self.0.decode_marker(&mut rc, &window).map_err(stream_error)? => {}
            Stop::Limit if block.len.is_some() => return Err(DAMAGED),
            Stop::Limit => return Err(DecodeError::TooLong),
        }
        let len = window.len;
        match rc.finish().map_err(stream_error)? {
            Finish::AtEnd => Ok(len),
            Finish::Before if prefix => Ok(len),
            Finish::Before => Err(TRAILING),
            Finish::No => Err(DAMAGED),
        }
    }
}

impl Decoder for Unalone {
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        let block = Block::new(src)?;
        if block.len.is_some_and(|len| len > dst.len() as u64) {
            return Err(DecodeError::TooLong);
        }
        self.decode(&block, dst, false)
    }

    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        if dst.is_empty() {
            return Ok(0);
        }
        self.decode(&Block::new(src)?, dst, true)
    }
}

/// A block taken apart.
struct Block<'a> {
    properties: Properties,
    dict_len: u32,
    /// The decoded length, if stated.
    len: Option<u64>,
    stream: &'a [u8],
}

impl Block<'_> {
    fn new(src: &[u8]) -> Result<Block<'_>, DecodeError> {
        let Some((&[properties, d0, d1, d2, d3, ref stated @ ..], stream)) =
            src.split_first_chunk::<HEADER_LEN>()
        else {
            return Err(DecodeError::Corrupt("shorter than an LZMA header"));
        };
        let properties = Properties::new(properties).ok_or(NO_HEADER)?;
        let dict_len = u32::from_le_bytes([d0, d1, d2, d3]);
        if dict_len > DICT_LEN_MAX {
            return Err(DecodeError::DictionaryTooLarge);
        }
        let stated = u64::from_le_bytes(*stated);
        Ok(Block { properties, dict_len, len: (stated != u64::MAX).then_some(stated), stream })
    }
}

/// The error for a stream that ends with its block.
fn stream_error(fault: Fault) -> DecodeError {
    match fault {
        Fault::Exhausted => TOO_SHORT,
        Fault::Damaged | Fault::Overlong => DAMAGED,
    }
}

/// Decodes a raw LZMA stream with each of the decoder's loops, on to a third of `room` bytes and
/// then to all of them. `byte` holds lc, lp and pb as `.lzma` stores them. True if all loops end
/// with the same outcome, bytes and model.
///
/// # Panics
/// If a loop writes beyond its room.
#[cfg(feature = "compare")]
pub fn loops_agree(packed: &[u8], byte: u8, dict_len: usize, room: usize) -> bool {
    let Some(properties) = decode::Properties::new(byte) else { return true };
    decode::compare::loops(packed, properties, &[room / 3, room], dict_len).is_some()
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

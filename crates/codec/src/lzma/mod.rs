//! LZMA1 in the `.lzma` ("alone") container, as MicroLZMA, and in vendors' framings, and the parts
//! of liblzma that xz shares.
//!
//! A block is a 13-byte header (properties byte, dictionary length in 4 bytes, decoded length in 8
//! bytes, all little-endian) and the LZMA1 stream. The header states the real length, so the
//! encoder writes no end marker; the decoder accepts both, and also a header with an unknown length
//! (all ones).

#[cfg(feature = "xz")]
pub(crate) mod coders;
#[cfg(not(feature = "xz"))]
crate::coders::coders!(LzmaSettings;);
pub(crate) mod decode;
mod micro;
mod settings;
mod vendor;

use crate::{DICT_LEN_MAX, DecodeError, Decoder};
use decode::{Fault, Finish, Properties, RangeDecoder, State, Stop, Window, reach};

use micro::Unmicro;
pub(crate) use settings::{LZMA, encoder_memory, print_preset};
pub use settings::{LzmaFraming, LzmaSettings};
use vendor::{Framing, Unsqlzma, Unvendor};

const HEADER_LEN: usize = 13;

pub(crate) const TOO_SHORT: DecodeError = DecodeError::Corrupt("LZMA stream ends too early");
pub(crate) const NO_HEADER: DecodeError = DecodeError::Corrupt("no header of an LZMA stream");
pub(crate) const UNKNOWN_OPTIONS: DecodeError = DecodeError::Corrupt("LZMA stream with unknown options");
pub(crate) const DAMAGED: DecodeError = DecodeError::Corrupt("damaged LZMA stream");
pub(crate) const TRAILING: DecodeError = DecodeError::Corrupt("bytes after the end of the LZMA stream");

pub(crate) struct Unalone(State);

impl Unalone {
    pub(crate) fn new() -> Unalone {
        Unalone(State::new())
    }

    /// Decodes the stream of a header, which may state a length. With `prefix`, stops as soon as
    /// `dst` is full.
    fn decode(&mut self, block: &Block<'_>, dst: &mut [u8], prefix: bool) -> Result<usize, DecodeError> {
        self.0.reset(block.properties);
        let room = dst.len();
        let limit = block.len.map_or(room, |len| usize::try_from(len).map_or(room, |len| len.min(room)));
        let cut = prefix && limit == room;
        let mut window = Window { dst, len: 0, limit, dict_len: reach(block.dict_len), cut };
        let mut rc = RangeDecoder::new(block.stream).map_err(stream_error)?;
        match self.0.decode(&mut rc, &mut window).map_err(|fault| match fault {
            // A copy beyond the end of a destination without a stated length.
            Fault::Overlong if block.len.is_none() => DecodeError::TooLong,
            fault => stream_error(fault),
        })? {
            Stop::Limit if cut => return Ok(limit),
            Stop::Marker if block.len.is_some() => return Err(DAMAGED),
            Stop::Marker => {}
            // With a stated length, the end marker is optional.
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

struct Block<'a> {
    properties: Properties,
    dict_len: u32,
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

fn stream_error(fault: Fault) -> DecodeError {
    match fault {
        Fault::Exhausted => TOO_SHORT,
        Fault::Damaged | Fault::Overlong => DAMAGED,
    }
}

/// Decodes a raw LZMA stream with each of the decoder's loops, up to a third of `room` bytes and
/// then to all of them. `byte` contains lc, lp, and pb as `.lzma` stores them. True if all loops
/// end with the same outcome, bytes, and model.
///
/// # Panics
///
/// If a loop writes beyond its room.
#[cfg(feature = "compare")]
pub fn loops_agree(packed: &[u8], byte: u8, dict_len: usize, room: usize) -> bool {
    let Some(properties) = decode::Properties::new(byte) else { return true };
    decode::compare::loops(packed, properties, &[room / 3, room], dict_len).is_some()
}

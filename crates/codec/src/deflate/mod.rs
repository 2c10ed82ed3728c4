//! DEFLATE, raw (RFC 1951) and in a zlib wrapper (RFC 1950).
//!
//! libdeflate writes blocks of the full 32 KiB window: faster and smaller than any zlib. It knows
//! neither smaller windows nor zlib's strategies, so blocks that ask for these go through zlib-rs.
//! Whole blocks are read by libdeflate, beginnings of blocks by zlib-rs, which can stop anywhere.

#[cfg(feature = "deflate")]
mod coders;
#[cfg(not(feature = "deflate"))]
crate::coders::coders!(ZlibSettings, DeflateSettings; zlib_decoder, raw_decoder, padded_decoder);
mod settings;

pub(crate) use coders::zlib_decoder;
use coders::{padded_decoder, raw_decoder};
pub(crate) use settings::{DEFLATE, ZLIB};
pub use settings::{DeflateSettings, ZlibSettings, ZlibStrategy};

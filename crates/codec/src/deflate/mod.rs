//! DEFLATE, raw (RFC 1951) and in a zlib wrapper (RFC 1950).
//!
//! libdeflate writes blocks with the full 32 KiB window, faster and smaller than any zlib. It
//! supports neither smaller windows nor zlib's strategies, so zlib-rs writes those. libdeflate
//! decodes whole blocks; zlib-rs decodes prefixes, as it can stop anywhere.

#[cfg(feature = "deflate")]
mod coders;
#[cfg(not(feature = "deflate"))]
crate::coders::coders!(ZlibSettings, DeflateSettings; zlib_decoder, raw_decoder, padded_decoder);
mod settings;

use crate::Algorithm;
use crate::codec::{Codec, Decoding};
pub(crate) use coders::zlib_decoder;
use coders::{padded_decoder, raw_decoder};
use settings::LEVEL_DEFAULT;
pub use settings::{DeflateSettings, ZlibSettings, ZlibStrategy};

pub(crate) static ZLIB: Codec = Codec {
    name: "gzip",
    algorithms: &[Algorithm::Zlib],
    levels: Some(1..=12),
    default_level: Some(LEVEL_DEFAULT as i32),
    options: "window=8..15, strategy=default+filtered+huffman+rle+fixed",
    description: "DEFLATE, read by every kernel and tool; optimal parsing from level 10",
    // As much as takes no longer than zlib's own level 9.
    for_size: "gzip:11",
    for_build: "gzip:5",
    decoding: &[
        Decoding::new(Algorithm::Zlib, zlib_decoder),
        Decoding::new(Algorithm::BtrfsZlib, padded_decoder),
    ],
};

pub(crate) static DEFLATE: Codec = Codec {
    name: "deflate",
    algorithms: &[Algorithm::Deflate],
    levels: Some(0..=12),
    default_level: Some(LEVEL_DEFAULT as i32),
    options: "",
    description: "DEFLATE without a wrapper; optimal parsing from level 10",
    for_size: "deflate:12",
    for_build: "deflate:5",
    decoding: &[Decoding::new(Algorithm::Deflate, raw_decoder)],
};

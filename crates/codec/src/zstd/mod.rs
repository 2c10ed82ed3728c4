//! Zstandard: one frame with its content size and without checksum.
//!
//! The frame's window is never larger than its content, because the content size is known when it
//! is written. A whole frame is decoded by one call into the destination, so no window is
//! allocated, whatever the frame states; a prefix of a frame is streamed, through a window of at
//! most 64 MiB.

#[cfg(feature = "zstd")]
mod coders;
#[cfg(not(feature = "zstd"))]
crate::coders::coders!(ZstdSettings; decoder, padded_decoder);
mod settings;

use crate::Algorithm;
use crate::codec::{Codec, Decoding};
use coders::{decoder, padded_decoder};
pub use settings::ZstdSettings;
use settings::{LEVEL_MAX, LEVEL_MIN};

pub(crate) static ZSTD: Codec = Codec {
    name: "zstd",
    algorithms: &[Algorithm::Zstd],
    levels: Some(LEVEL_MIN..=LEVEL_MAX),
    default_level: Some(15),
    options: "",
    description: "Zstandard; small and fast to read, the best of both for most images",
    for_size: "zstd:22",
    for_build: "zstd:3",
    decoding: &[Decoding::new(Algorithm::Zstd, decoder), Decoding::new(Algorithm::BtrfsZstd, padded_decoder)],
};

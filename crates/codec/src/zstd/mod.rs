//! Zstandard: one frame with its content size and without checksum.
//!
//! The frame's window is never larger than its content, because the content size is known when it
//! is written. Decoding all of a frame is one call into the destination, so no window is allocated,
//! whatever the frame demands; the beginning of a frame is streamed, through a window of at most
//! 64 MiB.

#[cfg(feature = "zstd")]
mod coders;
#[cfg(not(feature = "zstd"))]
crate::coders::coders!(ZstdSettings; decoder, padded_decoder);
mod settings;

use coders::{decoder, padded_decoder};
pub(crate) use settings::ZSTD;
pub use settings::ZstdSettings;

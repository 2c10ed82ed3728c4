//! DEFLATE in a zlib wrapper (RFC 1950, RFC 1951).
//!
//! libdeflate writes blocks of the full 32 KiB window: faster and smaller than any zlib. It knows neither smaller
//! windows nor zlib's strategies, so blocks that ask for these go through zlib-rs. All are read by libdeflate.

#[allow(unsafe_code)]
mod ffi;

use packfs_core::codec::ZlibStrategy;
use zlib_rs::{Deflate, DeflateConfig, DeflateFlush, Status, Strategy};

use crate::smallest::Smallest;
use crate::{DecodeError, Decoder, EncodeError, Encoder};

/// Encodes with the full window and libdeflate's own choices.
pub(crate) struct FullWindow(Option<ffi::Compressor>);

impl FullWindow {
    /// `level` is 1 to 12.
    pub(crate) fn new(level: u8) -> FullWindow {
        FullWindow(ffi::Compressor::new(level))
    }
}

impl Encoder for FullWindow {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        self.0.as_mut().ok_or(EncodeError::OutOfMemory)?.zlib(src, dst)
    }
}

/// Encodes with a chosen window, trying each chosen strategy and keeping the smallest result.
pub(crate) struct Strategies {
    streams: Vec<Deflate>,
    smallest: Smallest,
}

impl Strategies {
    /// `level` is 1 to 9, `window_log` 8 to 15; no strategy means zlib's default one.
    pub(crate) fn new(level: u8, window_log: u8, strategies: &[ZlibStrategy]) -> Strategies {
        let strategies = if strategies.is_empty() { &[ZlibStrategy::Default] } else { strategies };
        let streams = strategies.iter().map(|&strategy| stream(level, window_log, strategy)).collect();
        Strategies { streams, smallest: Smallest::default() }
    }
}

fn stream(level: u8, window_log: u8, strategy: ZlibStrategy) -> Deflate {
    Deflate::new_with_config(DeflateConfig {
        level: i32::from(level),
        window_bits: i32::from(window_log),
        strategy: match strategy {
            ZlibStrategy::Default => Strategy::Default,
            ZlibStrategy::Filtered => Strategy::Filtered,
            ZlibStrategy::HuffmanOnly => Strategy::HuffmanOnly,
            ZlibStrategy::RunLength => Strategy::Rle,
            ZlibStrategy::Fixed => Strategy::Fixed,
        },
        ..DeflateConfig::default()
    })
}

impl Encoder for Strategies {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        let mut round = self.smallest.begin(dst);
        for stream in &mut self.streams {
            round.attempt(|out| deflate(stream, src, out))?;
        }
        Ok(round.finish())
    }
}

fn deflate(stream: &mut Deflate, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
    stream.reset();
    match stream.compress(src, dst, DeflateFlush::Finish) {
        Ok(Status::StreamEnd) => Ok(usize::try_from(stream.total_out()).ok()),
        Ok(Status::Ok | Status::BufError) => Ok(None),
        Err(error) => Err(EncodeError::Internal(error.as_str())),
    }
}

/// Decodes zlib streams of any window.
pub(crate) struct Inflate(Option<ffi::Decompressor>);

impl Inflate {
    pub(crate) fn new() -> Inflate {
        Inflate(ffi::Decompressor::new())
    }
}

impl Decoder for Inflate {
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        self.0.as_mut().ok_or(DecodeError::OutOfMemory)?.zlib(src, dst)
    }
}

//! Coders of DEFLATE, by libdeflate and zlib-rs.

#[allow(unsafe_code)]
mod ffi;
mod fit;

use zlib_rs::{Deflate, DeflateConfig, DeflateFlush, InflateFlush, Status, Strategy};

use crate::smallest::Smallest;
use crate::{DecodeError, Decoder, EncodeError, Encoder};

use super::settings::{THOROUGH_LEVELS, WINDOW_LOG_MAX};
use super::{DeflateSettings, ZlibSettings, ZlibStrategy};
use crate::FitEncoder;
use crate::coders::{Coders, completed};
use crate::smallest::several;
use fit::RawFit;

/// Encodes with the full window and libdeflate's own choices.
struct FullWindow(Option<ffi::Compressor>);

impl FullWindow {
    /// `level` is 1 to 12.
    fn new(level: u8) -> FullWindow {
        FullWindow(ffi::Compressor::new(level))
    }
}

impl Encoder for FullWindow {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        self.0.as_mut().ok_or(EncodeError::OutOfMemory)?.zlib(src, dst)
    }
}

/// Encodes raw streams with the full window. None begins with a zero byte, so that zero padding
/// before a stream can be detected.
struct Raw(Option<ffi::Compressor>);

impl Raw {
    /// `level` is 0 to 12.
    fn new(level: u8) -> Raw {
        Raw(ffi::Compressor::new(level))
    }
}

/// Lowest padding bit of a stored block's header; decoders ignore it.
const STORED_PADDING_BIT: u8 = 1 << 3;

impl Encoder for Raw {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        let len = self.0.as_mut().ok_or(EncodeError::OutOfMemory)?.raw(src, dst)?;
        if let Some(first @ 0) = dst.first_mut() {
            *first = STORED_PADDING_BIT;
        }
        Ok(len)
    }
}

/// Tries each given strategy with the given window, and keeps the smallest result.
struct Strategies {
    streams: Vec<Deflate>,
    smallest: Smallest,
}

impl Strategies {
    /// `level` is 1 to 9, `window_log` 8 to 15; an empty list means zlib's default strategy.
    fn new(level: u8, window_log: u8, strategies: &[ZlibStrategy]) -> Strategies {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrapper {
    None,
    Zlib,
    /// zlib followed by anything; the decoded data is padded with zeros.
    Padded,
}

struct Inflate {
    wrapper: Wrapper,
    whole: Option<ffi::Decompressor>,
    prefix: Option<zlib_rs::Inflate>,
}

impl Inflate {
    fn new(wrapper: Wrapper) -> Inflate {
        Inflate { wrapper, whole: ffi::Decompressor::new(), prefix: None }
    }
}

impl Decoder for Inflate {
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        let whole = self.whole.as_mut().ok_or(DecodeError::OutOfMemory)?;
        match self.wrapper {
            Wrapper::None => whole.raw(src, dst),
            Wrapper::Zlib => whole.zlib(src, dst),
            Wrapper::Padded => whole.zlib_at_start(src, dst).map(|len| completed(dst, len)),
        }
    }

    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        let wrapped = self.wrapper != Wrapper::None;
        let stream = self.prefix.get_or_insert_with(|| zlib_rs::Inflate::new(wrapped, WINDOW_LOG_MAX));
        stream.reset(wrapped);
        let status = stream.decompress(src, dst, InflateFlush::Finish);
        let len = usize::try_from(stream.total_out()).unwrap_or(usize::MAX);
        match status {
            // A full destination is sufficient, even if the next byte is invalid.
            _ if len == dst.len() => Ok(len),
            Ok(Status::StreamEnd) if self.wrapper == Wrapper::Padded => Ok(completed(dst, len)),
            Ok(Status::StreamEnd) => Ok(len),
            Ok(Status::Ok | Status::BufError) => Err(DecodeError::Corrupt("DEFLATE stream ends too early")),
            Err(zlib_rs::InflateError::MemError) => Err(DecodeError::OutOfMemory),
            Err(_) => Err(DecodeError::Corrupt("damaged DEFLATE stream")),
        }
    }
}

pub(crate) fn zlib_decoder() -> Box<dyn Decoder> {
    Box::new(Inflate::new(Wrapper::Zlib))
}

pub(super) fn padded_decoder() -> Box<dyn Decoder> {
    Box::new(Inflate::new(Wrapper::Padded))
}

pub(super) fn raw_decoder() -> Box<dyn Decoder> {
    Box::new(Inflate::new(Wrapper::None))
}

impl Coders for ZlibSettings {
    fn encoder(&self) -> Box<dyn Encoder> {
        if self.is_full_window() {
            Box::new(FullWindow::new(self.level))
        } else {
            Box::new(Strategies::new(self.level, self.window_log, &self.strategies))
        }
    }

    fn thorough_encoder(&self) -> Box<dyn Encoder> {
        if self.is_full_window() {
            several(THOROUGH_LEVELS.map(|level| Box::new(FullWindow::new(level)) as _))
        } else {
            self.encoder()
        }
    }
}

impl Coders for DeflateSettings {
    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(Raw::new(self.level))
    }

    fn fit_encoder(&self) -> Option<Box<dyn FitEncoder>> {
        Some(Box::new(RawFit::new(self.level)))
    }

    fn thorough_fit_encoder(&self) -> Option<Box<dyn FitEncoder>> {
        Some(Box::new(RawFit::new(THOROUGH_LEVELS[0])))
    }
}

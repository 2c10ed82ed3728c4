//! Coders of Zstandard, by libzstd.

mod fit;

use zstd_safe::{CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

use crate::{DecodeError, Decoder, EncodeError, Encoder};

/// `ZSTD_error_memory_allocation` and `ZSTD_error_dstSize_tooSmall` (zstd_errors.h); functions
/// return them negated.
const MEMORY_ALLOCATION: usize = 64;
const DST_SIZE_TOO_SMALL: usize = 70;
/// `ZSTD_error_frameParameter_windowTooLarge`.
const WINDOW_TOO_LARGE: usize = 16;

const FRAME_MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();

/// Window log that leaves the choice to the level.
const LEVELS_OWN: u32 = 0;

/// 64 MiB, as [`DICT_LEN_MAX`](crate::DICT_LEN_MAX).
const PREFIX_WINDOW_LOG_MAX: u32 = 26;

use super::ZstdSettings;
use super::settings::LEVEL_MAX;
use crate::FitEncoder;
use crate::coders::{Coders, completed};
use crate::smallest::several;
use fit::FrameFit;

struct Frame {
    context: Result<CCtx<'static>, EncodeError>,
    window_log_max: Option<u8>,
}

impl Frame {
    /// `level` is within `ZSTD_minCLevel` to `ZSTD_maxCLevel`.
    fn new(level: i32, window_log_max: Option<u8>) -> Frame {
        Frame { context: context(level), window_log_max }
    }

    /// `len` replaces the level's minimum length of matches.
    fn with_match_len_min(level: i32, window_log_max: Option<u8>, len: Option<u32>) -> Frame {
        let with_len = |mut context: CCtx<'static>| {
            if let Some(len) = len {
                context.set_parameter(CParameter::MinMatch(len)).map_err(encode_error)?;
            }
            Ok(context)
        };
        Frame { context: context(level).and_then(with_len), window_log_max }
    }
}

/// Promising minimum lengths of matches for the slowest strategy: the level's own, then longer
/// ones.
const MATCH_LENS_MIN: [Option<u32>; 3] = [None, Some(4), Some(5)];

fn context(level: i32) -> Result<CCtx<'static>, EncodeError> {
    let mut context = CCtx::try_create().ok_or(EncodeError::OutOfMemory)?;
    context.set_parameter(CParameter::CompressionLevel(level)).map_err(encode_error)?;
    Ok(context)
}

/// Keeps the window of the next frame within the limit. Inputs that fit the limit need no
/// adjustment: windows are never longer than the known input.
fn limit_window(context: &mut CCtx<'_>, src_len: usize, log_max: Option<u8>) -> Result<(), EncodeError> {
    let Some(log_max) = log_max.map(u32::from) else { return Ok(()) };
    let log = if src_len > 1 << log_max { log_max } else { LEVELS_OWN };
    // A frame that did not fit leaves the context in an intermediate state.
    context.reset(ResetDirective::SessionOnly).map_err(encode_error)?;
    context.set_parameter(CParameter::WindowLog(log)).map_err(encode_error)?;
    Ok(())
}

fn encode_error(code: usize) -> EncodeError {
    match code.wrapping_neg() {
        MEMORY_ALLOCATION => EncodeError::OutOfMemory,
        _ => EncodeError::Internal(zstd_safe::get_error_name(code)),
    }
}

impl Encoder for Frame {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        let context = self.context.as_mut().map_err(|error| *error)?;
        limit_window(context, src.len(), self.window_log_max)?;
        match context.compress2(dst, src) {
            Ok(len) => Ok(Some(len)),
            Err(code) if code.wrapping_neg() == DST_SIZE_TOO_SMALL => Ok(None),
            Err(code) => Err(encode_error(code)),
        }
    }
}

struct Unframe {
    whole: Option<DCtx<'static>>,
    prefix: Option<DCtx<'static>>,
}

impl Unframe {
    fn new() -> Unframe {
        Unframe { whole: DCtx::try_create(), prefix: None }
    }

    /// Returns the context for prefixes of frames, at the start of one.
    fn prefix(&mut self) -> Result<&mut DCtx<'static>, DecodeError> {
        if self.prefix.is_none() {
            self.prefix = DCtx::try_create();
        }
        let context = self.prefix.as_mut().ok_or(DecodeError::OutOfMemory)?;
        context.reset(ResetDirective::SessionAndParameters).map_err(decode_error)?;
        context.set_parameter(DParameter::WindowLogMax(PREFIX_WINDOW_LOG_MAX)).map_err(decode_error)?;
        Ok(context)
    }
}

fn decode_error(code: usize) -> DecodeError {
    match code.wrapping_neg() {
        DST_SIZE_TOO_SMALL => DecodeError::TooLong,
        MEMORY_ALLOCATION => DecodeError::OutOfMemory,
        WINDOW_TOO_LARGE => DecodeError::DictionaryTooLarge,
        _ => DecodeError::Corrupt(zstd_safe::get_error_name(code)),
    }
}

impl Decoder for Unframe {
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        if src.is_empty() {
            return Err(DecodeError::Corrupt("empty zstd frame"));
        }
        self.whole.as_mut().ok_or(DecodeError::OutOfMemory)?.decompress(dst, src).map_err(decode_error)
    }

    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        self.decompress_frames(src, dst, true)
    }
}

impl Unframe {
    /// Decodes a prefix of a frame; with `goes_on` also those of frames that follow it.
    fn decompress_frames(&mut self, src: &[u8], dst: &mut [u8], goes_on: bool) -> Result<usize, DecodeError> {
        let context = self.prefix()?;
        let dst_len = dst.len();
        let (mut input, mut output) = (InBuffer::around(src), OutBuffer::around(dst));
        while output.pos() < dst_len {
            let before = (input.pos(), output.pos());
            let frame_ended = context.decompress_stream(&mut output, &mut input).map_err(decode_error)? == 0;
            let rest = src.get(input.pos()..).unwrap_or_default();
            if frame_ended && !(goes_on && rest.starts_with(&FRAME_MAGIC)) {
                break;
            }
            if before == (input.pos(), output.pos()) {
                return Err(DecodeError::Corrupt("zstd frame ends too early"));
            }
        }
        Ok(output.pos())
    }
}

/// Decodes frames in sectors of btrfs: anything may follow, and the decoded data is padded with
/// zeros.
struct Unpad(Unframe);

impl Decoder for Unpad {
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        let len = zstd_safe::find_frame_compressed_size(src).map_err(decode_error)?;
        let frame = src.get(..len).ok_or(DecodeError::Corrupt("zstd frame ends too early"))?;
        let len = self.0.decompress(frame, dst)?;
        Ok(completed(dst, len))
    }

    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        let len = self.0.decompress_frames(src, dst, false)?;
        Ok(completed(dst, len))
    }
}

pub(super) fn padded_decoder() -> Box<dyn Decoder> {
    Box::new(Unpad(Unframe::new()))
}

pub(super) fn decoder() -> Box<dyn Decoder> {
    Box::new(Unframe::new())
}

impl Coders for ZstdSettings {
    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(Frame::new(self.level, self.window_log_max))
    }

    fn thorough_encoder(&self) -> Box<dyn Encoder> {
        several(
            MATCH_LENS_MIN
                .map(|len| Box::new(Frame::with_match_len_min(LEVEL_MAX, self.window_log_max, len)) as _),
        )
    }

    fn fit_encoder(&self) -> Option<Box<dyn FitEncoder>> {
        Some(Box::new(FrameFit::new(self.level, self.window_log_max)))
    }

    fn thorough_fit_encoder(&self) -> Option<Box<dyn FitEncoder>> {
        Some(Box::new(FrameFit::new(LEVEL_MAX, self.window_log_max)))
    }
}

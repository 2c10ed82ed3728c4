//! Zstandard: one frame with its content size and without checksum.
//!
//! The frame's window is never larger than its content, because the content size is known when it is written.
//! Decoding is one call into the destination, so no window is allocated, whatever the frame demands.

use zstd_safe::{CCtx, CParameter, DCtx};

use crate::{DecodeError, Decoder, EncodeError, Encoder};

/// `ZSTD_error_memory_allocation` and `ZSTD_error_dstSize_tooSmall` (zstd_errors.h); functions return them negated.
const MEMORY_ALLOCATION: usize = 64;
const DST_SIZE_TOO_SMALL: usize = 70;

/// Encodes frames of one level.
pub(crate) struct Frame(Result<CCtx<'static>, EncodeError>);

impl Frame {
    /// `level` is one that `ZSTD_minCLevel` to `ZSTD_maxCLevel` allow.
    pub(crate) fn new(level: i32) -> Frame {
        Frame(context(level))
    }
}

fn context(level: i32) -> Result<CCtx<'static>, EncodeError> {
    let mut context = CCtx::try_create().ok_or(EncodeError::OutOfMemory)?;
    context.set_parameter(CParameter::CompressionLevel(level)).map_err(encode_error)?;
    Ok(context)
}

fn encode_error(code: usize) -> EncodeError {
    match code.wrapping_neg() {
        MEMORY_ALLOCATION => EncodeError::OutOfMemory,
        _ => EncodeError::Internal(zstd_safe::get_error_name(code)),
    }
}

impl Encoder for Frame {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        match self.0.as_mut().map_err(|error| *error)?.compress2(dst, src) {
            Ok(len) => Ok(Some(len)),
            Err(code) if code.wrapping_neg() == DST_SIZE_TOO_SMALL => Ok(None),
            Err(code) => Err(encode_error(code)),
        }
    }
}

/// Decodes frames.
pub(crate) struct Unframe(Option<DCtx<'static>>);

impl Unframe {
    pub(crate) fn new() -> Unframe {
        Unframe(DCtx::try_create())
    }
}

impl Decoder for Unframe {
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        if src.is_empty() {
            return Err(DecodeError::Corrupt("empty zstd frame"));
        }
        let context = self.0.as_mut().ok_or(DecodeError::OutOfMemory)?;
        context.decompress(dst, src).map_err(|code| match code.wrapping_neg() {
            DST_SIZE_TOO_SMALL => DecodeError::TooLong,
            MEMORY_ALLOCATION => DecodeError::OutOfMemory,
            _ => DecodeError::Corrupt(zstd_safe::get_error_name(code)),
        })
    }
}

//! Encoders by settings, and the memory that they take.

use crate::{CodecSettings, Encoder, FitEncoder, SettingsError};

/// Makes an encoder.
///
/// # Errors
/// A setting is out of its range.
pub fn encoder(settings: &CodecSettings) -> Result<Box<dyn Encoder>, SettingsError> {
    settings.get().check()?;
    Ok(settings.get().encoder())
}

/// Makes an encoder at its codec's highest level that tries every way worth a try and keeps the
/// shortest result, for images that are made once and read often.
///
/// # Errors
/// A setting is out of its range.
pub fn thorough_encoder(settings: &CodecSettings) -> Result<Box<dyn Encoder>, SettingsError> {
    settings.get().check()?;
    Ok(settings.get().thorough_encoder())
}

/// Makes an encoder to outputs of a fixed length: LZ4, MicroLZMA, DEFLATE or Zstandard.
///
/// # Errors
/// A setting is out of its range, or of another algorithm.
pub fn fit_encoder(settings: &CodecSettings) -> Result<Box<dyn FitEncoder>, SettingsError> {
    settings.get().check()?;
    settings.get().fit_encoder().ok_or_else(|| cannot_fit(settings))
}

/// Makes the same at its codec's highest level, as [`thorough_encoder`] does.
///
/// # Errors
/// A setting is out of its range, or of another algorithm.
pub fn thorough_fit_encoder(settings: &CodecSettings) -> Result<Box<dyn FitEncoder>, SettingsError> {
    settings.get().check()?;
    settings.get().thorough_fit_encoder().ok_or_else(|| cannot_fit(settings))
}

fn cannot_fit(settings: &CodecSettings) -> SettingsError {
    let what = "algorithm for outputs of a fixed length";
    SettingsError::new(what, settings.algorithm(), "one that can fill an output")
}

/// Estimates the bytes that one encoder needs for blocks, or stretches, of `input_len` bytes:
/// tables and states, not the input.
pub fn encoder_memory(settings: &CodecSettings, input_len: u64) -> u64 {
    settings.get().memory(input_len)
}

/// Estimates the same for [`thorough_encoder`] and [`thorough_fit_encoder`], with room for all the
/// ways that they try.
pub fn thorough_memory(settings: &CodecSettings, input_len: u64) -> u64 {
    settings.get().thorough_memory(input_len)
}

//! Encoders by settings, and their memory.

use crate::{CodecSettings, Encoder, FitEncoder, SettingsError};

/// Returns an encoder.
///
/// # Errors
///
/// A setting is out of its range.
pub fn encoder(settings: &CodecSettings) -> Result<Box<dyn Encoder>, SettingsError> {
    settings.get().check()?;
    Ok(settings.get().encoder())
}

/// Returns an encoder with its codec's highest level that tries every promising set of parameters
/// and keeps the shortest result, for images that are built once and read often.
///
/// # Errors
///
/// A setting is out of its range.
pub fn thorough_encoder(settings: &CodecSettings) -> Result<Box<dyn Encoder>, SettingsError> {
    settings.get().check()?;
    Ok(settings.get().thorough_encoder())
}

/// Returns an encoder to outputs of a fixed length: LZ4, MicroLZMA, DEFLATE, or Zstandard.
///
/// # Errors
///
/// A setting is out of its range, or of another algorithm.
pub fn fit_encoder(settings: &CodecSettings) -> Result<Box<dyn FitEncoder>, SettingsError> {
    settings.get().check()?;
    settings.get().fit_encoder().ok_or_else(|| cannot_fit(settings))
}

/// Returns an encoder to outputs of a fixed length with its codec's highest level, like
/// [`thorough_encoder`].
///
/// # Errors
///
/// A setting is out of its range, or of another algorithm.
pub fn thorough_fit_encoder(settings: &CodecSettings) -> Result<Box<dyn FitEncoder>, SettingsError> {
    settings.get().check()?;
    settings.get().thorough_fit_encoder().ok_or_else(|| cannot_fit(settings))
}

fn cannot_fit(settings: &CodecSettings) -> SettingsError {
    SettingsError::new(
        "algorithm for outputs of a fixed length",
        settings.algorithm(),
        "one that can fill an output",
    )
}

/// Estimates the memory of one encoder for inputs of `input_len` bytes: tables and states, not the
/// input.
pub fn encoder_memory(settings: &CodecSettings, input_len: u64) -> u64 {
    settings.get().memory(input_len)
}

/// Estimates the memory of [`thorough_encoder`] and [`thorough_fit_encoder`], including all trials.
pub fn thorough_memory(settings: &CodecSettings, input_len: u64) -> u64 {
    settings.get().thorough_memory(input_len)
}

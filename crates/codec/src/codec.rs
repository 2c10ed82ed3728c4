//! Definition of a codec: its properties, and the trait of its settings.

use std::fmt;
use std::ops::RangeInclusive;

use crate::coders::Coders;
use crate::dictionary::{DictLens, Dictionary};
use crate::options::{Options, in_range};
use crate::{Algorithm, Decoder, SettingsError};

/// A codec that users can name, with the properties to choose it by. `none` is not a codec.
#[derive(Debug)]
#[non_exhaustive]
pub struct Codec {
    /// The name users type.
    pub name: &'static str,
    /// Algorithms that its encoders write; lz4 and lz4hc share one. Several if formats frame the
    /// same codec differently.
    pub algorithms: &'static [Algorithm],
    /// The levels, lowest (fastest) to highest (smallest); `None` for a codec without levels.
    pub levels: Option<RangeInclusive<i32>>,
    /// The default level; `None` for a codec without levels.
    pub default_level: Option<i32>,
    /// Options after the level, in the syntax of help; empty without options.
    pub options: &'static str,
    /// One line about its purpose.
    pub description: &'static str,
    pub(crate) for_size: &'static str,
    pub(crate) for_build: &'static str,
    /// Decoders of its algorithms, and of those that are only read. Codecs that share an algorithm
    /// list it once.
    pub(crate) decoding: &'static [Decoding],
}

#[derive(Debug)]
pub(crate) struct Decoding {
    pub algorithm: Algorithm,
    pub decoder: fn() -> Box<dyn Decoder>,
    /// Set if a prefix of a block decodes as fast per byte as the whole.
    pub has_fast_prefix: bool,
    /// Set if a block states where it ends.
    pub tells_end: bool,
}

impl Decoding {
    pub(crate) const fn new(algorithm: Algorithm, decoder: fn() -> Box<dyn Decoder>) -> Decoding {
        Decoding { algorithm, decoder, has_fast_prefix: false, tells_end: true }
    }
}

impl Codec {
    pub(crate) fn check_level(&self, level: i32) -> Result<(), SettingsError> {
        match &self.levels {
            Some(levels) => in_range(&format!("{} level", self.name), level, levels.clone()),
            None => Ok(()),
        }
    }
}

/// Limit of the encoders that a thorough encoder keeps at a time.
pub(crate) const THOROUGH_WAYS_MAX: u64 = 4;

/// Settings of a codec, and its operations except decoding.
pub(crate) trait Settings: Coders {
    /// Parses level and options. The caller refuses unknown options, and settings that
    /// [`check`](Settings::check) refuses.
    fn parse(options: &mut Options<'_>) -> Result<Self, SettingsError>
    where
        Self: Sized;

    /// Prints the settings in the syntax of specs. Codecs with dictionaries print `dict` as given
    /// instead of the resolved length.
    fn print(&self, f: &mut fmt::Formatter<'_>, dict: Dictionary) -> fmt::Result;

    /// Completes settings that depend on the format: its algorithms, and the limit of dictionaries.
    fn resolve(
        &mut self,
        _algorithms: &[Algorithm],
        _dict: Dictionary,
        _dict_lens: DictLens,
    ) -> Result<(), SettingsError> {
        Ok(())
    }

    fn check(&self) -> Result<(), SettingsError>;

    /// Algorithm that decodes the output.
    fn algorithm(&self) -> Algorithm;

    /// Distance in bytes within which the encoder finds repetitions; `None` if blocks are never
    /// longer.
    fn reach(&self) -> Option<u32> {
        None
    }

    /// True if an encoder takes much longer for a block than the fast one that predicts its gain.
    fn is_slow(&self) -> bool;

    /// Approximate memory of an encoder for inputs of `input_len` bytes: tables and states, not the
    /// input.
    fn memory(&self, input_len: u64) -> u64;

    /// The same for a thorough encoder, with all of its trials.
    fn thorough_memory(&self, input_len: u64) -> u64 {
        THOROUGH_WAYS_MAX * self.memory(input_len)
    }
}

pub(crate) const MIB: u64 = 1 << 20;

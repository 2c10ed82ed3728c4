//! The shape of a codec: one row of facts, and one trait that its settings implement.

use std::fmt;
use std::ops::RangeInclusive;

use crate::coders::Coders;
use crate::dictionary::{DictLens, Dictionary};
use crate::options::{Options, in_range};
use crate::{Algorithm, Decoder, SettingsError};

/// A codec that users can name, with the facts to choose it by. `none` is no codec.
#[derive(Debug)]
pub struct Codec {
    /// The name users type.
    pub name: &'static str,
    /// The algorithms that its encoders write; lz4 and lz4hc share one. Several where formats frame
    /// the same codec differently.
    pub algorithms: &'static [Algorithm],
    /// The levels, lowest (fastest) to highest (smallest); None for a codec without levels.
    pub levels: Option<RangeInclusive<i32>>,
    /// The level when none is named; None for a codec without levels.
    pub default_level: Option<i32>,
    /// The options after the level, as help prints them; empty for none.
    pub options: &'static str,
    /// One line on what it is good for.
    pub description: &'static str,
    /// The codec as typed for the smallest image.
    pub(crate) for_size: &'static str,
    /// The codec as typed for the image that is made soonest.
    pub(crate) for_build: &'static str,
    /// Decoding of its algorithms, and of those that are only read. Codecs that share an algorithm
    /// list it once.
    pub(crate) decoding: &'static [Decoding],
}

/// Facts of an algorithm for those who decode it.
#[derive(Debug)]
pub(crate) struct Decoding {
    pub algorithm: Algorithm,
    /// Makes a decoder.
    pub decoder: fn() -> Box<dyn Decoder>,
    /// Set if the beginning of a block decodes as fast, byte for byte, as the whole.
    pub has_fast_prefix: bool,
    /// Set if a block tells where it ends.
    pub tells_end: bool,
}

impl Decoding {
    /// Facts of most algorithms.
    pub(crate) const fn new(algorithm: Algorithm, decoder: fn() -> Box<dyn Decoder>) -> Decoding {
        Decoding { algorithm, decoder, has_fast_prefix: false, tells_end: true }
    }
}

impl Codec {
    /// Refuses a level that the codec does not have.
    pub(crate) fn check_level(&self, level: i32) -> Result<(), SettingsError> {
        match &self.levels {
            Some(levels) => in_range(&format!("{} level", self.name), level, levels.clone()),
            None => Ok(()),
        }
    }
}

/// Most ways that a thorough encoder holds ready at a time.
pub(crate) const THOROUGH_WAYS_MAX: u64 = 4;

/// Settings of one codec, and all that this crate asks of it except decoding.
pub(crate) trait Settings: Coders {
    /// Reads level and options as typed. Options that are left unread are refused afterwards, and
    /// so are settings that [`check`](Settings::check) refuses.
    fn parse(options: &mut Options<'_>) -> Result<Self, SettingsError>
    where
        Self: Sized;

    /// Prints the settings as they can be typed. Codecs with dictionaries print `dict`, as it was
    /// typed, instead of the resolved length.
    fn print(&self, f: &mut fmt::Formatter<'_>, dict: Dictionary) -> fmt::Result;

    /// Completes what depends on the format: its algorithms, and how long a dictionary may be.
    fn resolve(
        &mut self,
        _algorithms: &[Algorithm],
        _dict: Dictionary,
        _dict_lens: DictLens,
    ) -> Result<(), SettingsError> {
        Ok(())
    }

    /// Refuses settings that are out of range, whether they were typed or built.
    fn check(&self) -> Result<(), SettingsError>;

    /// The algorithm that decodes what these settings produce.
    fn algorithm(&self) -> Algorithm;

    /// Distance in bytes within which the encoder finds repetitions; None where blocks are never
    /// longer.
    fn reach(&self) -> Option<u32> {
        None
    }

    /// True if an encoder takes much longer for a block than the fast one that foretells its gain.
    fn is_slow(&self) -> bool;

    /// Bytes that an encoder needs for inputs of `input_len` bytes, about: tables and states, not
    /// the input.
    fn memory(&self, input_len: u64) -> u64;

    /// The same for a thorough encoder, with room for all the ways that it tries.
    fn thorough_memory(&self, input_len: u64) -> u64 {
        THOROUGH_WAYS_MAX * self.memory(input_len)
    }
}

/// One MiB, in which encoders' memory is counted.
pub(crate) const MIB: u64 = 1 << 20;

//! The two codecs of DEFLATE: `gzip`, which is zlib streams, and `deflate`, without a wrapper.

use std::fmt;

use super::{DEFLATE, ZLIB};
use crate::codec::{MIB, Settings, THOROUGH_WAYS_MAX};
use crate::dictionary::Dictionary;
use crate::options::{Options, in_range, name_in, print_names};
use crate::{Algorithm, SettingsError};

pub(super) const LEVEL_DEFAULT: u8 = 9;

/// zlib's full window, 32 KiB.
pub(super) const WINDOW_LOG_MAX: u8 = 15;

pub(super) const THOROUGH_LEVELS: [u8; 3] = [12, 11, 10];

/// Lowest level that is much slower than the others.
const SLOW_LEVEL_MIN: u8 = 6;

/// Settings of zlib streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZlibSettings {
    /// 1 (fastest) to 12 (smallest); 10 to 12 search for near-optimal parses.
    pub level: u8,
    /// Base-2 logarithm of the window, 8 to 15.
    pub window_log: u8,
    /// Strategies of the zlib encoder to try in turn, keeping the smallest result; empty for the
    /// encoder's choice.
    pub strategies: Vec<ZlibStrategy>,
}

impl Default for ZlibSettings {
    fn default() -> ZlibSettings {
        ZlibSettings { level: LEVEL_DEFAULT, window_log: WINDOW_LOG_MAX, strategies: Vec::new() }
    }
}

/// Strategies of zlib's `deflateInit2`, in the order of the SquashFS option bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZlibStrategy {
    /// `Z_DEFAULT_STRATEGY`.
    Default,
    /// `Z_FILTERED`.
    Filtered,
    /// `Z_HUFFMAN_ONLY`.
    HuffmanOnly,
    /// `Z_RLE`.
    RunLength,
    /// `Z_FIXED`.
    Fixed,
}

/// Names of strategies, the short one first; the long ones are those of mksquashfs.
const STRATEGIES: [(&str, ZlibStrategy); 7] = [
    ("default", ZlibStrategy::Default),
    ("filtered", ZlibStrategy::Filtered),
    ("huffman", ZlibStrategy::HuffmanOnly),
    ("rle", ZlibStrategy::RunLength),
    ("fixed", ZlibStrategy::Fixed),
    ("huffman_only", ZlibStrategy::HuffmanOnly),
    ("run_length_encoded", ZlibStrategy::RunLength),
];

impl ZlibSettings {
    /// True if libdeflate supports the settings: it has the full window only, and no strategies.
    pub(super) fn is_full_window(&self) -> bool {
        self.window_log == WINDOW_LOG_MAX && self.strategies.is_empty()
    }
}

impl Settings for ZlibSettings {
    fn parse(options: &mut Options<'_>) -> Result<ZlibSettings, SettingsError> {
        Ok(ZlibSettings {
            level: options.small_level(),
            window_log: options.number("window", "8 to 15")?.unwrap_or(WINDOW_LOG_MAX),
            strategies: options.names("strategy", &STRATEGIES)?,
        })
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, _: Dictionary) -> fmt::Result {
        write!(f, "gzip:{}", self.level)?;
        if self.window_log != WINDOW_LOG_MAX {
            write!(f, ",window={}", self.window_log)?;
        }
        print_names(f, ",strategy=", self.strategies.iter().map(|&strategy| name_in(&STRATEGIES, strategy)))
    }

    fn check(&self) -> Result<(), SettingsError> {
        ZLIB.check_level(self.level.into())?;
        in_range("gzip window", self.window_log, 8..=WINDOW_LOG_MAX)?;
        if self.level > 9 && !self.is_full_window() {
            return Err(SettingsError::new("gzip level with a window or strategy", self.level, "1 to 9")
                .with_hint("levels 10 to 12 are for the full window of 15 and no strategy"));
        }
        Ok(())
    }

    fn algorithm(&self) -> Algorithm {
        Algorithm::Zlib
    }

    fn reach(&self) -> Option<u32> {
        Some(1 << self.window_log)
    }

    fn is_slow(&self) -> bool {
        self.level >= SLOW_LEVEL_MIN
    }

    fn memory(&self, _: u64) -> u64 {
        memory(self.level)
    }

    fn thorough_memory(&self, _: u64) -> u64 {
        THOROUGH_WAYS_MAX * memory(THOROUGH_LEVELS[0])
    }
}

/// Settings of raw DEFLATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeflateSettings {
    /// 0 (stored) to 12 (smallest); 10 to 12 search for near-optimal parses.
    pub level: u8,
}

impl Settings for DeflateSettings {
    fn parse(options: &mut Options<'_>) -> Result<DeflateSettings, SettingsError> {
        Ok(DeflateSettings { level: options.small_level() })
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, _: Dictionary) -> fmt::Result {
        write!(f, "deflate:{}", self.level)
    }

    fn check(&self) -> Result<(), SettingsError> {
        DEFLATE.check_level(self.level.into())
    }

    fn algorithm(&self) -> Algorithm {
        Algorithm::Deflate
    }

    fn reach(&self) -> Option<u32> {
        Some(1 << WINDOW_LOG_MAX)
    }

    fn is_slow(&self) -> bool {
        self.level >= SLOW_LEVEL_MIN
    }

    fn memory(&self, _: u64) -> u64 {
        memory(self.level)
    }

    fn thorough_memory(&self, _: u64) -> u64 {
        THOROUGH_WAYS_MAX * memory(THOROUGH_LEVELS[0])
    }
}

/// Memory of libdeflate at a level, as measured.
fn memory(level: u8) -> u64 {
    match level {
        0..=9 => MIB,
        _ => 9 * MIB,
    }
}

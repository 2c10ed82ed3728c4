//! The codec `zstd`.

use std::fmt;

use super::ZSTD;
use crate::codec::{MIB, Settings, THOROUGH_WAYS_MAX};
use crate::dictionary::Dictionary;
use crate::options::{Options, in_range};
use crate::{Algorithm, SettingsError};

/// `ZSTD_minCLevel()`.
pub(super) const LEVEL_MIN: i32 = -131_072;
/// `ZSTD_maxCLevel()`.
pub(super) const LEVEL_MAX: i32 = 22;

/// Settings of Zstandard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZstdSettings {
    /// Negative (fast) to 22.
    pub level: i32,
    /// Largest base-2 logarithm of a frame's window, 10 to 31, where a format has a limit; `None`:
    /// the level's own.
    pub window_log_max: Option<u8>,
}

impl Settings for ZstdSettings {
    fn parse(options: &mut Options<'_>) -> Result<ZstdSettings, SettingsError> {
        Ok(ZstdSettings { level: options.level(), window_log_max: None })
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, _: Dictionary) -> fmt::Result {
        write!(f, "zstd:{}", self.level)
    }

    fn check(&self) -> Result<(), SettingsError> {
        if self.level == 0 {
            return Err(SettingsError::new("zstd level", 0, "-131072 to -1 and 1 to 22")
                .with_hint("zstd takes 0 for its own default, 3"));
        }
        in_range("zstd window limit", self.window_log_max.unwrap_or(31), 10..=31)?;
        ZSTD.check_level(self.level)
    }

    fn algorithm(&self) -> Algorithm {
        Algorithm::Zstd
    }

    fn is_slow(&self) -> bool {
        self.level >= 6
    }

    fn memory(&self, input_len: u64) -> u64 {
        memory(self.level, self.window_log_max, input_len)
    }

    fn thorough_memory(&self, input_len: u64) -> u64 {
        THOROUGH_WAYS_MAX * memory(LEVEL_MAX, self.window_log_max, input_len)
    }
}

/// Tables of up to three words for each byte of the window, and the states of the optimal parser.
fn memory(level: i32, window_log_max: Option<u8>, input_len: u64) -> u64 {
    let window_max = 1 << window_log_max.unwrap_or(27).min(27);
    let window_len = input_len.clamp(1 << 10, window_max).next_power_of_two();
    match level {
        ..=4 => MIB + 2 * window_len,
        5..=12 => 2 * MIB + 8 * window_len,
        _ => 4 * MIB + 12 * window_len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_the_library() {
        assert_eq!(ZSTD.levels, Some(zstd_safe::min_c_level()..=zstd_safe::max_c_level()));
    }

    #[test]
    fn larger_windows_need_more_memory() {
        let memory = |level, input_len| ZstdSettings { level, window_log_max: None }.memory(input_len);
        assert!(memory(3, 128 << 10) < memory(22, 128 << 10));
        assert!(memory(22, 128 << 10) < memory(22, 4 << 20));
        assert!(memory(22, u64::MAX) < 2 << 30);
    }
}

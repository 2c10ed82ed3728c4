//! The ranges of all settings, checked in one place whether settings were typed or built.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::{CodecSettings, LzoVariant};

use crate::SettingsError;
use crate::lzma::{DICT_LEN_MAX, LZMA_DICT_LEN_MIN, is_dict_len};
use crate::table;
use crate::xz::XZ_DICT_LEN_MIN;

/// zlib's full window, 32 KiB.
pub(crate) const WINDOW_LOG_MAX: u8 = 15;

/// Whether an encoder can be made of these settings.
pub(crate) fn check(settings: &CodecSettings) -> Result<(), SettingsError> {
    match *settings {
        CodecSettings::Zlib { level, window_log, ref strategies } => {
            level_in_table("gzip", level.into())?;
            in_range("gzip window", window_log, 8..=WINDOW_LOG_MAX)?;
            if level > 9 && (window_log != WINDOW_LOG_MAX || !strategies.is_empty()) {
                return Err(SettingsError::new("gzip level with a window or strategy", level, "1 to 9")
                    .with_hint("levels 10 to 12 are for the full window of 15 and no strategy"));
            }
            Ok(())
        }
        CodecSettings::LzmaAlone { preset, dict_len, .. }
        | CodecSettings::MicroLzma { preset, dict_len, .. } => {
            level_in_table("lzma", preset.into())?;
            dictionary("lzma dictionary", dict_len, LZMA_DICT_LEN_MIN)
        }
        CodecSettings::Lzo { variant: LzoVariant::X999, level } => level_in_table("lzo", level.into()),
        CodecSettings::Lzo { .. } => Ok(()),
        CodecSettings::Xz { preset, dict_len, .. } => {
            level_in_table("xz", preset.into())?;
            dictionary("xz dictionary", dict_len, XZ_DICT_LEN_MIN)
        }
        CodecSettings::Lz4 { acceleration } => in_range("lz4 acceleration", acceleration, 1..=65_537),
        CodecSettings::Lz4Hc { level } => level_in_table("lz4hc", level.into()),
        CodecSettings::Zstd { level: 0, .. } => {
            Err(SettingsError::new("zstd level", 0, "-131072 to -1 and 1 to 22")
                .with_hint("zstd takes 0 for its own default, 3"))
        }
        CodecSettings::Zstd { level, window_log_max } => {
            in_range("zstd window limit", window_log_max.unwrap_or(31), 10..=31)?;
            level_in_table("zstd", level)
        }
        CodecSettings::Deflate { level } => level_in_table("deflate", level.into()),
    }
}

fn level_in_table(name: &str, level: i32) -> Result<(), SettingsError> {
    match table::row(name).and_then(|row| row.levels.clone()) {
        Some(levels) => in_range(&format!("{name} level"), level, levels),
        None => Ok(()),
    }
}

pub(crate) fn in_range<T: PartialOrd + Display>(
    what: &str,
    found: T,
    allowed: RangeInclusive<T>,
) -> Result<(), SettingsError> {
    if allowed.contains(&found) {
        return Ok(());
    }
    Err(SettingsError::new(what, found, format!("{} to {}", allowed.start(), allowed.end())))
}

fn dictionary(what: &str, dict_len: u32, dict_len_min: u32) -> Result<(), SettingsError> {
    if is_dict_len(dict_len) && (dict_len_min..=DICT_LEN_MAX).contains(&dict_len) {
        return Ok(());
    }
    let allowed = format!(
        "2^n or 2^n + 2^(n-1) bytes from {} to {}",
        crate::spec::display_len(dict_len_min),
        crate::spec::display_len(DICT_LEN_MAX)
    );
    Err(SettingsError::new(what, crate::spec::display_len(dict_len), allowed))
}

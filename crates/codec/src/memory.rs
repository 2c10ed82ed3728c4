//! What encoders take of memory.

use crate::CodecSettings;

const MIB: u64 = 1 << 20;

/// About how many bytes one encoder needs for blocks, or stretches, of `input_len` bytes: tables and states, not the input.
///
/// liblzma: 7.5 (hash chains, presets 0 to 3) or 11.5 (binary trees) times the dictionary, as xz(1) has it. zstd: tables of
/// up to three words for each byte of the window, and the states of the optimal parser. The others were measured.
pub fn encoder_memory(settings: &CodecSettings, input_len: u64) -> u64 {
    match *settings {
        CodecSettings::Zlib { level, .. } | CodecSettings::Deflate { level } => match level {
            0..=9 => MIB,
            _ => 9 * MIB,
        },
        CodecSettings::Xz { preset, extreme, dict_len, .. }
        | CodecSettings::LzmaAlone { preset, extreme, dict_len }
        | CodecSettings::MicroLzma { preset, extreme, dict_len } => {
            let dict_len = u64::from(dict_len);
            let tables = if preset <= 3 && !extreme { dict_len * 15 / 2 } else { dict_len * 23 / 2 };
            tables + 4 * MIB
        }
        CodecSettings::Zstd { level, window_log_max } => {
            let window_max = 1 << window_log_max.unwrap_or(27).min(27);
            let window_len = input_len.clamp(1 << 10, window_max).next_power_of_two();
            match level {
                ..=4 => MIB + 2 * window_len,
                5..=12 => 2 * MIB + 8 * window_len,
                _ => 4 * MIB + 12 * window_len,
            }
        }
        CodecSettings::Lzo { .. } | CodecSettings::Lz4 { .. } => MIB,
        CodecSettings::Lz4Hc { .. } => 4 * MIB,
    }
}

/// Most ways that a thorough encoder holds ready at a time.
const WAYS_MAX: u64 = 4;

/// The same for [`crate::thorough_encoder`] and [`crate::thorough_fit_encoder`], with room for all the ways that they try.
pub fn thorough_memory(settings: &CodecSettings, input_len: u64) -> u64 {
    let highest = match settings {
        CodecSettings::Zlib { .. } | CodecSettings::Deflate { .. } => CodecSettings::Deflate { level: 12 },
        CodecSettings::Zstd { window_log_max, .. } => {
            CodecSettings::Zstd { level: 22, window_log_max: *window_log_max }
        }
        other => other.clone(),
    };
    WAYS_MAX * encoder_memory(&highest, input_len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_dictionaries_and_windows_need_more() {
        let xz = |dict_len| CodecSettings::Xz { preset: 6, extreme: false, dict_len, filters: Vec::new() };
        assert_eq!(encoder_memory(&xz(8 << 20), 1 << 20), 96 * MIB);
        assert!(encoder_memory(&xz(1 << 20), 1 << 20) < 16 * MIB);
        let zstd = |level| CodecSettings::Zstd { level, window_log_max: None };
        assert!(encoder_memory(&zstd(3), 128 << 10) < encoder_memory(&zstd(22), 128 << 10));
        assert!(encoder_memory(&zstd(22), 128 << 10) < encoder_memory(&zstd(22), 4 << 20));
        assert!(encoder_memory(&zstd(22), u64::MAX) < 2 << 30);
    }
}

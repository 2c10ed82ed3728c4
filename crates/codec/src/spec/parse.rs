//! Text to [`CodecSpec`].

use std::str::FromStr;

use crate::{BranchFilter, CodecSettings, LzoVariant, ZlibStrategy};

use super::{Choice, CodecSpec, Dictionary};
use crate::table::{self, CODECS, CodecRow};
use crate::{SettingsError, validate};

/// Strategies as typed, the short name first; the long ones are those of mksquashfs.
pub(super) const STRATEGIES: [(&str, ZlibStrategy); 7] = [
    ("default", ZlibStrategy::Default),
    ("filtered", ZlibStrategy::Filtered),
    ("huffman", ZlibStrategy::HuffmanOnly),
    ("rle", ZlibStrategy::RunLength),
    ("fixed", ZlibStrategy::Fixed),
    ("huffman_only", ZlibStrategy::HuffmanOnly),
    ("run_length_encoded", ZlibStrategy::RunLength),
];

/// Variants as typed, the short name first; the long ones are those of mksquashfs.
pub(super) const VARIANTS: [(&str, LzoVariant); 10] = [
    ("1", LzoVariant::X1),
    ("1_11", LzoVariant::X1_11),
    ("1_12", LzoVariant::X1_12),
    ("1_15", LzoVariant::X1_15),
    ("999", LzoVariant::X999),
    ("lzo1x_1", LzoVariant::X1),
    ("lzo1x_1_11", LzoVariant::X1_11),
    ("lzo1x_1_12", LzoVariant::X1_12),
    ("lzo1x_1_15", LzoVariant::X1_15),
    ("lzo1x_999", LzoVariant::X999),
];

/// A dictionary that every codec and block length allows, to check the other settings with.
const SOUND_DICT_LEN: u32 = 1 << 17;

impl FromStr for CodecSpec {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<CodecSpec, SettingsError> {
        let mut parts = text.split(',');
        let head = parts.next().unwrap_or_default();
        let (name, level) = match head.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (head, None),
        };
        let choice = if name == "none" {
            stored(level, parts.next())?
        } else {
            let row = table::row(name).ok_or_else(|| unknown_name(name))?;
            let mut draft = Draft::new(row, level)?;
            parts.try_for_each(|part| draft.take(part))?;
            draft.finish()?
        };
        Ok(CodecSpec { choice })
    }
}

fn stored(level: Option<&str>, option: Option<&str>) -> Result<Choice, SettingsError> {
    match (level, option) {
        (Some(level), _) => Err(SettingsError::new("none level", level, "no level")),
        (None, Some(option)) => Err(SettingsError::new("none option", quoted(option), "no option")),
        (None, None) => Ok(Choice::Stored),
    }
}

fn unknown_name(name: &str) -> SettingsError {
    let names: Vec<_> = CODECS.iter().map(|row| row.name).chain(["none"]).collect();
    SettingsError::new("codec", quoted(name), names.join(", "))
}

/// The settings so far, while options are read. Each codec reads only the options it has.
struct Draft {
    row: &'static CodecRow,
    level: Option<i32>,
    window_log: u8,
    strategies: Vec<ZlibStrategy>,
    variant: LzoVariant,
    acceleration: u32,
    extreme: bool,
    dict: Dictionary,
    filters: Vec<BranchFilter>,
    seen: Vec<String>,
}

impl Draft {
    fn new(row: &'static CodecRow, level: Option<&str>) -> Result<Draft, SettingsError> {
        let level = match (level, &row.levels) {
            (None, _) => None,
            (Some(level), None) => {
                return Err(SettingsError::new(format!("{} level", row.name), level, "no level"));
            }
            (Some(text), Some(levels)) => {
                let what = format!("{} level", row.name);
                let level: i32 = number(&what, text, || format!("{} to {}", levels.start(), levels.end()))?;
                validate::in_range(&what, level, levels.clone())?;
                Some(level)
            }
        };
        Ok(Draft {
            row,
            level,
            window_log: validate::WINDOW_LOG_MAX,
            strategies: Vec::new(),
            variant: LzoVariant::X999,
            acceleration: 1,
            extreme: false,
            dict: Dictionary::Usual,
            filters: Vec::new(),
            seen: Vec::new(),
        })
    }

    /// Reads one option, `KEY=VALUE` or `extreme`.
    fn take(&mut self, option: &str) -> Result<(), SettingsError> {
        let (key, value) = match option.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (option, None),
        };
        let what = format!("{} {key}", self.row.name);
        if self.seen.iter().any(|seen| seen == key) {
            return Err(SettingsError::new(what, "two", "one"));
        }
        match (self.row.name, key, value) {
            ("gzip", "window", Some(value)) => {
                self.window_log = number(&what, value, || "8 to 15".into())?;
            }
            ("gzip", "strategy", Some(value)) => self.strategies = names(&what, value, &STRATEGIES)?,
            ("lzo", "variant", Some(value)) => self.variant = name(&what, value, &VARIANTS)?,
            ("lz4", "acceleration", Some(value)) => {
                self.acceleration = number(&what, value, || "1 to 65537".into())?;
            }
            ("xz" | "lzma", "extreme", None) => self.extreme = true,
            ("xz", "bcj", Some(value)) => self.filters = branches(&what, value)?,
            ("xz" | "lzma", "dict", Some(value)) => self.dict = dictionary(&what, value)?,
            _ => return Err(self.unknown_option(option)),
        }
        self.seen.push(key.into());
        Ok(())
    }

    fn unknown_option(&self, option: &str) -> SettingsError {
        let allowed = if self.row.options.is_empty() { "no option" } else { self.row.options };
        SettingsError::new(format!("{} option", self.row.name), quoted(option), allowed)
    }

    fn finish(self) -> Result<Choice, SettingsError> {
        if self.row.name == "lzo" && self.variant != LzoVariant::X999 && self.level.is_some() {
            return Err(SettingsError::new("lzo level", self.level.unwrap_or_default(), "no level")
                .with_hint("only variant 999 has levels"));
        }
        let settings = self.settings()?;
        validate::check(&settings)?;
        Ok(match settings {
            CodecSettings::LzmaAlone { preset, extreme, .. } => {
                Choice::Lzma { preset, extreme, dict: self.dict }
            }
            CodecSettings::Xz { preset, extreme, filters, .. } => {
                Choice::Xz { preset, extreme, dict: self.dict, filters }
            }
            settings => Choice::Settled(settings),
        })
    }

    fn settings(&self) -> Result<CodecSettings, SettingsError> {
        let level = self.level.or(self.row.default_level).unwrap_or_default();
        // Only zstd has levels that are no byte; the others were held against their range when they were read.
        let small = u8::try_from(level).unwrap_or(u8::MAX);
        Ok(match self.row.name {
            "gzip" => CodecSettings::Zlib {
                level: small,
                window_log: self.window_log,
                strategies: self.strategies.clone(),
            },
            "lzo" => CodecSettings::Lzo { variant: self.variant, level: small },
            "lz4" => CodecSettings::Lz4 { acceleration: self.acceleration },
            "lz4hc" => CodecSettings::Lz4Hc { level: small },
            "xz" => CodecSettings::Xz {
                preset: small,
                extreme: self.extreme,
                dict_len: SOUND_DICT_LEN,
                filters: self.filters.clone(),
            },
            "lzma" => {
                CodecSettings::LzmaAlone { preset: small, extreme: self.extreme, dict_len: SOUND_DICT_LEN }
            }
            "zstd" => CodecSettings::Zstd { level, window_log_max: None },
            "deflate" => CodecSettings::Deflate { level: small },
            other => return Err(unknown_name(other)),
        })
    }
}

/// Filters as typed: `auto` are all that every kernel decodes.
fn branches(what: &str, text: &str) -> Result<Vec<BranchFilter>, SettingsError> {
    match text.strip_prefix("auto") {
        None => names(what, text, &branch_filters()),
        Some("") => Ok(BranchFilter::OLD.to_vec()),
        Some(more) => {
            let more = more.strip_prefix('+').unwrap_or(more);
            let more = names(what, more, &branch_filters())?;
            let new = more.into_iter().filter(|filter| !BranchFilter::OLD.contains(filter));
            Ok(BranchFilter::OLD.iter().copied().chain(new).collect())
        }
    }
}

fn branch_filters() -> [(&'static str, BranchFilter); BranchFilter::ALL.len()] {
    BranchFilter::ALL.map(|filter| (filter.name(), filter))
}

/// A number as typed; out of the type's range is an error like out of the allowed one.
fn number<T: FromStr>(what: &str, text: &str, allowed: impl FnOnce() -> String) -> Result<T, SettingsError> {
    text.parse().map_err(|_| SettingsError::new(what, quoted(text), allowed()))
}

fn name<T: Copy>(what: &str, text: &str, known: &[(&str, T)]) -> Result<T, SettingsError> {
    known.iter().find(|(name, _)| *name == text).map(|&(_, value)| value).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        SettingsError::new(what, quoted(text), names.join(", "))
    })
}

/// Names joined by `+`; one named twice counts once.
fn names<T: Copy + PartialEq>(what: &str, text: &str, known: &[(&str, T)]) -> Result<Vec<T>, SettingsError> {
    let mut values = Vec::new();
    for part in text.split('+') {
        let value = name(what, part, known)?;
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Ok(values)
}

/// `BYTES`, `NK`, `NM`, or `N%` of the format's usual length.
fn dictionary(what: &str, text: &str) -> Result<Dictionary, SettingsError> {
    let refused =
        || SettingsError::new(what, quoted(text), "a length such as 131072, 128K or 1M, or 1% to 100%");
    if let Some(percent) = text.strip_suffix('%') {
        let percent: u8 = percent.parse().map_err(|_| refused())?;
        let allowed = (1..=100).contains(&percent);
        return if allowed { Ok(Dictionary::PercentOfUsual(percent)) } else { Err(refused()) };
    }
    let (digits, unit) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1 << 10),
        None => match text.strip_suffix(['M', 'm']) {
            Some(digits) => (digits, 1 << 20),
            None => (text, 1u32),
        },
    };
    let count: u32 = digits.parse().map_err(|_| refused())?;
    count.checked_mul(unit).map(Dictionary::Bytes).ok_or_else(refused)
}

fn quoted(text: &str) -> String {
    format!("`{text}`")
}

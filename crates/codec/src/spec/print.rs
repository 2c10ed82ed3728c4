//! [`CodecSpec`] to text that parses to the same.

use std::fmt;

use crate::{BranchFilter, CodecSettings, LzoVariant};

use super::parse::{STRATEGIES, VARIANTS};
use super::{Choice, CodecSpec, Dictionary};
use crate::validate::WINDOW_LOG_MAX;

impl fmt::Display for CodecSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.choice {
            Choice::Stored => f.write_str("none"),
            Choice::Settled(ref settings) => settled(f, settings),
            Choice::Lzma { preset, extreme, dict } => {
                head(f, "lzma", preset, extreme)?;
                dictionary(f, dict)
            }
            Choice::Xz { preset, extreme, dict, ref filters } => {
                head(f, "xz", preset, extreme)?;
                dictionary(f, dict)?;
                match filters.strip_prefix(BranchFilter::OLD) {
                    None => list(f, ",bcj=", filters.iter().map(|filter| filter.name())),
                    Some(more) => {
                        let more = more.iter().map(|filter| filter.name());
                        list(f, ",bcj=", std::iter::once("auto").chain(more))
                    }
                }
            }
        }
    }
}

fn head(f: &mut fmt::Formatter<'_>, name: &str, preset: u8, extreme: bool) -> fmt::Result {
    write!(f, "{name}:{preset}{}", if extreme { ",extreme" } else { "" })
}

fn settled(f: &mut fmt::Formatter<'_>, settings: &CodecSettings) -> fmt::Result {
    match *settings {
        CodecSettings::Zlib { level, window_log, ref strategies } => {
            write!(f, "gzip:{level}")?;
            if window_log != WINDOW_LOG_MAX {
                write!(f, ",window={window_log}")?;
            }
            list(f, ",strategy=", strategies.iter().map(|&strategy| name_in(&STRATEGIES, strategy)))
        }
        CodecSettings::Lzo { variant: LzoVariant::X999, level } => write!(f, "lzo:{level}"),
        CodecSettings::Lzo { variant, .. } => write!(f, "lzo,variant={}", name_in(&VARIANTS, variant)),
        CodecSettings::Lz4 { acceleration: 1 } => f.write_str("lz4"),
        CodecSettings::Lz4 { acceleration } => write!(f, "lz4,acceleration={acceleration}"),
        CodecSettings::Lz4Hc { level } => write!(f, "lz4hc:{level}"),
        CodecSettings::Zstd { level, .. } => write!(f, "zstd:{level}"),
        CodecSettings::Deflate { level } => write!(f, "deflate:{level}"),
        CodecSettings::LzmaAlone { preset, extreme, dict_len }
        | CodecSettings::MicroLzma { preset, extreme, dict_len } => {
            head(f, "lzma", preset, extreme)?;
            dictionary(f, Dictionary::Bytes(dict_len))
        }
        CodecSettings::Xz { preset, extreme, dict_len, .. } => {
            head(f, "xz", preset, extreme)?;
            dictionary(f, Dictionary::Bytes(dict_len))
        }
    }
}

fn dictionary(f: &mut fmt::Formatter<'_>, dict: Dictionary) -> fmt::Result {
    match dict {
        Dictionary::Usual => Ok(()),
        Dictionary::Bytes(dict_len) => write!(f, ",dict={}", display_len(dict_len)),
        Dictionary::PercentOfUsual(percent) => write!(f, ",dict={percent}%"),
    }
}

/// `prefix` and the names joined by `+`; nothing for an empty list.
fn list(
    f: &mut fmt::Formatter<'_>,
    prefix: &str,
    mut names: impl Iterator<Item = &'static str>,
) -> fmt::Result {
    let Some(first) = names.next() else { return Ok(()) };
    write!(f, "{prefix}{first}")?;
    names.try_for_each(|name| write!(f, "+{name}"))
}

fn name_in<T: PartialEq>(known: &[(&'static str, T)], value: T) -> &'static str {
    known.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

/// A length with the largest unit that leaves no remainder: `1M`, `96K`, `1000`.
pub(crate) fn display_len(len: u32) -> String {
    match len {
        0 => "0".into(),
        _ if len.is_multiple_of(1 << 20) => format!("{}M", len >> 20),
        _ if len.is_multiple_of(1 << 10) => format!("{}K", len >> 10),
        _ => len.to_string(),
    }
}

//! What a user typed: `NAME[:LEVEL][,KEY=VALUE...]`, for example `gzip:9,window=15,strategy=default+rle`,
//! `xz:6,dict=75%,bcj=x86+arm64,extreme`, `lzo,variant=1`, `lz4hc`, `none`.
//!
//! A spec is checked as it is parsed, except for what depends on the format: which algorithms it has (`lzma` is LZMA1
//! in one framing here and in another there), and how long a dictionary may be. That is settled when the format asks for
//! the settings. What a format's header can record of it is the format's concern.

mod parse;
mod print;

use crate::{Algorithm, BranchFilter, CodecSettings};

use crate::lzma::LZMA_DICT_LEN_MIN;
use crate::table::{CODECS, CodecRow};
use crate::xz::XZ_DICT_LEN_MIN;
use crate::{SettingsError, validate};

pub(crate) use print::display_len;

/// A codec with its options, before the format and its block length are known. Displays as it can be typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecSpec {
    choice: Choice,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    /// Blocks are stored.
    Stored,
    /// Nothing depends on the block length.
    Settled(CodecSettings),
    Lzma {
        preset: u8,
        extreme: bool,
        dict: Dictionary,
    },
    Xz {
        preset: u8,
        extreme: bool,
        dict: Dictionary,
        filters: Vec<BranchFilter>,
    },
}

/// How long an LZMA dictionary is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dictionary {
    /// As long as the format has it.
    Usual,
    Bytes(u32),
    /// Of the usual length; at least the codec's minimum, too.
    PercentOfUsual(u8),
}

/// How long a format lets a dictionary be. A codec's own minimum goes above both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DictLens {
    /// Bytes of a dictionary when none is named, and what percentages are of.
    pub usual: u32,
    /// Most bytes.
    pub max: u32,
}

impl DictLens {
    /// For blocks that decode to at most so many bytes: as long as the block, as more is never reached.
    pub fn of_block(block_len: u32) -> DictLens {
        DictLens { usual: block_len, max: block_len }
    }
}

impl CodecSpec {
    /// The settings in a format that has these algorithms; None for `none`.
    ///
    /// # Errors
    /// The format has no algorithm of this codec, or the dictionary is longer than it allows or of a length that LZMA
    /// headers cannot express.
    pub fn resolve(
        &self,
        algorithms: &[Algorithm],
        dict_lens: DictLens,
    ) -> Result<Option<CodecSettings>, SettingsError> {
        let settings = match self.choice {
            Choice::Stored => return Ok(None),
            Choice::Settled(ref settings) => settings.clone(),
            Choice::Lzma { preset, extreme, dict } => {
                let dict_len = dict.resolve("lzma dictionary", dict_lens, LZMA_DICT_LEN_MIN)?;
                match algorithms.contains(&Algorithm::MicroLzma) {
                    true => CodecSettings::MicroLzma { preset, extreme, dict_len },
                    false => CodecSettings::LzmaAlone { preset, extreme, dict_len },
                }
            }
            Choice::Xz { preset, extreme, dict, ref filters } => CodecSettings::Xz {
                preset,
                extreme,
                dict_len: dict.resolve("xz dictionary", dict_lens, XZ_DICT_LEN_MIN)?,
                filters: filters.clone(),
            },
        };
        if !algorithms.contains(&settings.algorithm()) {
            return Err(self.not_of(algorithms));
        }
        validate::check(&settings)?;
        Ok(Some(settings))
    }

    fn not_of(&self, algorithms: &[Algorithm]) -> SettingsError {
        let has = |row: &&CodecRow| row.algorithms.iter().any(|algorithm| algorithms.contains(algorithm));
        let names: Vec<_> = CODECS.iter().filter(has).map(|row| row.name).chain(["none"]).collect();
        SettingsError::new("codec", format!("`{self}`"), names.join(", "))
    }
}

impl Dictionary {
    fn resolve(self, what: &str, lens: DictLens, dict_len_min: u32) -> Result<u32, SettingsError> {
        let usual = lens.usual.max(dict_len_min);
        let dict_len = match self {
            Dictionary::Usual => return Ok(usual),
            Dictionary::Bytes(dict_len) => dict_len,
            Dictionary::PercentOfUsual(percent) => {
                let share = u64::from(lens.usual) * u64::from(percent) / 100;
                u32::try_from(share).unwrap_or(u32::MAX).max(dict_len_min)
            }
        };
        let dict_len_max = lens.max.max(usual);
        if dict_len > dict_len_max {
            let allowed = format!("at most {}", display_len(dict_len_max));
            return Err(SettingsError::new(what, display_len(dict_len), allowed)
                .with_hint("more than a block, or than the format knows, is of no use"));
        }
        Ok(dict_len)
    }
}

#[cfg(test)]
mod tests;

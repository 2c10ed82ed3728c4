//! What a user typed: `NAME[:LEVEL][,KEY=VALUE...]`, for example `gzip:9,window=15,strategy=default+rle`,
//! `xz:6,dict=75%,bcj=x86+arm64,extreme`, `lzo,variant=1`, `lz4hc`, `none`.
//!
//! A spec is checked as it is parsed, except for a dictionary that depends on the block length: that is settled when
//! the block length is known. What a format's header can record of it is the format's concern.

mod parse;
mod print;

use packfs_core::codec::{BranchFilter, CodecSettings};

use crate::lzma::LZMA_DICT_LEN_MIN;
use crate::xz::XZ_DICT_LEN_MIN;
use crate::{SettingsError, validate};

pub(crate) use print::display_len;

/// A codec with its options, before the block length is known. Displays as it can be typed.
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
    /// As long as the block, and at least the codec's minimum.
    Block,
    Bytes(u32),
    /// At least the codec's minimum, too.
    PercentOfBlock(u8),
}

impl CodecSpec {
    /// The settings for blocks of `block_len` bytes; None for `none`.
    ///
    /// # Errors
    /// The dictionary is longer than the block, or of a length that LZMA headers cannot express.
    pub fn resolve(&self, block_len: u32) -> Result<Option<CodecSettings>, SettingsError> {
        let settings = match self.choice {
            Choice::Stored => return Ok(None),
            Choice::Settled(ref settings) => settings.clone(),
            Choice::Lzma { preset, dict } => CodecSettings::LzmaAlone {
                preset,
                dict_len: dict.resolve("lzma dictionary", block_len, LZMA_DICT_LEN_MIN)?,
            },
            Choice::Xz { preset, extreme, dict, ref filters } => CodecSettings::Xz {
                preset,
                extreme,
                dict_len: dict.resolve("xz dictionary", block_len, XZ_DICT_LEN_MIN)?,
                filters: filters.clone(),
            },
        };
        validate::check(&settings)?;
        Ok(Some(settings))
    }
}

impl Dictionary {
    fn resolve(self, what: &str, block_len: u32, dict_len_min: u32) -> Result<u32, SettingsError> {
        let dict_len_max = block_len.max(dict_len_min);
        let dict_len = match self {
            Dictionary::Block => return Ok(dict_len_max),
            Dictionary::Bytes(dict_len) => dict_len,
            Dictionary::PercentOfBlock(percent) => {
                let share = u64::from(block_len) * u64::from(percent) / 100;
                u32::try_from(share).unwrap_or(u32::MAX).max(dict_len_min)
            }
        };
        if dict_len > dict_len_max {
            let allowed = format!("at most {} (the block length)", display_len(dict_len_max));
            return Err(SettingsError::new(what, display_len(dict_len), allowed));
        }
        Ok(dict_len)
    }
}

#[cfg(test)]
mod tests;

//! Specs of codecs: `NAME[:LEVEL][,KEY=VALUE...]`, for example
//! `gzip:9,window=15,strategy=default+rle`, `xz:6,dict=75%,bcj=x86+arm64,extreme`, `lzo,variant=1`,
//! `lz4hc`, `none`.
//!
//! A spec is checked when it is parsed, except for what depends on the format: its algorithms (the
//! framing of `lzma` differs by format), and the length of a dictionary. Those are resolved when
//! the format requests the settings. The format decides what its header can record of them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use packfs_core::Goal;

use crate::codec::Codec;
use crate::dictionary::{DictLens, Dictionary};
use crate::options::{Options, quoted};
use crate::table::CODECS;
use crate::{Algorithm, CodecSettings, SettingsError};

/// A codec with its options, before the format and its block length are known. Displays in the
/// syntax of specs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecSpec {
    /// `None` for uncompressed blocks.
    typed: Option<Typed>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Typed {
    /// Settings, provisional where they depend on the format.
    settings: CodecSettings,
    dict: Dictionary,
}

impl CodecSpec {
    /// Returns the settings for a format with these algorithms; `None` for `none`.
    ///
    /// # Errors
    ///
    /// The format has no algorithm of this codec, or the dictionary is longer than permitted or not
    /// representable in LZMA headers.
    pub fn resolve(
        &self,
        algorithms: &[Algorithm],
        dict_lens: DictLens,
    ) -> Result<Option<CodecSettings>, SettingsError> {
        let Some(Typed { settings, dict }) = &self.typed else { return Ok(None) };
        let mut settings = settings.clone();
        settings.get_mut().resolve(algorithms, *dict, dict_lens)?;
        if !algorithms.contains(&settings.algorithm()) {
            return Err(self.not_of(algorithms));
        }
        settings.get().check()?;
        Ok(Some(settings))
    }

    fn not_of(&self, algorithms: &[Algorithm]) -> SettingsError {
        let has = |codec: &Codec| codec.algorithms.iter().any(|algorithm| algorithms.contains(algorithm));
        SettingsError::new("codec", quoted(&self.to_string()), names(has))
    }
}

fn names(has: impl Fn(&Codec) -> bool) -> String {
    let known = CODECS.iter().filter(|codec| has(codec)).map(|codec| codec.name);
    known.chain(["none"]).collect::<Vec<_>>().join(", ")
}

impl FromStr for CodecSpec {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<CodecSpec, SettingsError> {
        let (head, options) = text.split_once(',').map_or((text, None), |(head, rest)| (head, Some(rest)));
        let (name, level) = head.split_once(':').map_or((head, None), |(name, level)| (name, Some(level)));
        let mut options = options.into_iter().flat_map(|options| options.split(','));
        if name == "none" {
            return stored(level, options.next());
        }
        let unknown = || SettingsError::new("codec", quoted(name), names(|_| true));
        let (codec, parse) = Codec::by_name(name).ok_or_else(unknown)?;
        let level = level.map(|level| parse_level(codec, level)).transpose()?;
        let mut options = Options::new(codec.name, level, codec.default_level, options);
        let settings = parse(&mut options)?;
        let dict = options.finish().map_err(|option| unknown_option(codec, option))?;
        settings.get().check()?;
        Ok(CodecSpec { typed: Some(Typed { settings, dict }) })
    }
}

fn stored(level: Option<&str>, option: Option<&str>) -> Result<CodecSpec, SettingsError> {
    match (level, option) {
        (Some(level), _) => Err(SettingsError::new("none level", level, "no level")),
        (None, Some(option)) => Err(SettingsError::new("none option", quoted(option), "no option")),
        (None, None) => Ok(CodecSpec { typed: None }),
    }
}

fn parse_level(codec: &Codec, text: &str) -> Result<i32, SettingsError> {
    let what = format!("{} level", codec.name);
    let Some(levels) = &codec.levels else { return Err(SettingsError::new(what, text, "no level")) };
    let allowed = || format!("{} to {}", levels.start(), levels.end());
    let level = text.parse().map_err(|_| SettingsError::new(what, quoted(text), allowed()))?;
    codec.check_level(level)?;
    Ok(level)
}

fn unknown_option(codec: &Codec, option: &str) -> SettingsError {
    let allowed = if codec.options.is_empty() { "no option" } else { codec.options };
    SettingsError::new(format!("{} option", codec.name), quoted(option), allowed)
}

impl fmt::Display for CodecSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.typed {
            None => f.write_str("none"),
            Some(Typed { settings, dict }) => settings.get().print(f, *dict),
        }
    }
}

/// Completes the spec of a codec, or of two joined by `+`: a name without level and options gets
/// those of the goal. Goals without a choice leave the codec's defaults.
pub fn codec_for_goal(typed: &str, goal: Goal) -> Cow<'_, str> {
    let meant = |name| match goal {
        Goal::Size => Codec::by_name(name).map(|(codec, _)| codec.for_size),
        Goal::Build => Codec::by_name(name).map(|(codec, _)| codec.for_build),
        Goal::Balanced | Goal::Read => None,
    };
    if !typed.split('+').any(|name| meant(name).is_some()) {
        return typed.into();
    }
    typed.split('+').map(|name| meant(name).unwrap_or(name)).collect::<Vec<_>>().join("+").into()
}

#[cfg(test)]
mod tests;

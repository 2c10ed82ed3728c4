//! Values of options: how they are typed, and how they are read.

#[cfg(feature = "pack")]
use packfs_core::ImagePath;
#[cfg(feature = "pack")]
use packfs_core::Words;
use packfs_core::parse_size;
use std::ffi::OsStr;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

/// Number of values that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// None: it is a switch, whose text is `on` or `off`.
    Nothing,
    /// None, and it is taken back by the same name behind `no-`, which has this help.
    NothingOrNo(&'static str),
    /// One; the last one given counts.
    One,
    /// One each time that it is given.
    Many,
}

/// Values that an option takes.
pub(super) struct Values<V> {
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    pub(super) words: fn() -> Vec<&'static str>,
    pub(super) names: fn(&OsStr) -> Option<PathBuf>,
    pub(super) takes_dashes: bool,
    read: Read<V>,
}

enum Read<V> {
    Text(fn(&str) -> Result<V, String>),
    Bytes(fn(&OsStr) -> Result<V, String>),
}

impl<V> Values<V> {
    /// Values that are texts.
    pub(super) const fn new(name: &'static str, read: fn(&str) -> Result<V, String>) -> Self {
        let (takes, words, takes_dashes, read) = (Takes::One, Vec::new as fn() -> _, false, Read::Text(read));
        Values { name, takes, words, names: |_| None, takes_dashes, read }
    }

    /// Values that are any bytes, such as paths.
    pub(super) const fn bytes(name: &'static str, read: fn(&OsStr) -> Result<V, String>) -> Self {
        Values { read: Read::Bytes(read), ..Values::new(name, |_| Err(String::new())) }
    }

    /// The same, of which several may be given.
    pub(super) const fn many(self) -> Self {
        Values { takes: Takes::Many, ..self }
    }

    /// The same, which may begin with a dash.
    #[cfg(feature = "pack")]
    pub(super) const fn with_dashes(self) -> Self {
        Values { takes_dashes: true, ..self }
    }

    /// The same, of which a shell completes some.
    pub(super) const fn among(self, words: fn() -> Vec<&'static str>) -> Self {
        Values { words, ..self }
    }

    /// The same, some of which name files.
    pub(super) const fn naming(self, names: fn(&OsStr) -> Option<PathBuf>) -> Self {
        Values { names, ..self }
    }

    /// Reads a value as typed.
    pub(super) fn read(&self, text: &OsStr) -> Result<V, String> {
        match self.read {
            Read::Bytes(read) => read(text),
            Read::Text(read) => read(text.to_str().ok_or("not UTF-8")?),
        }
    }
}

/// A switch.
pub(super) const SWITCH: Values<bool> = Values { takes: Takes::Nothing, ..Values::new("", read_switch) };

/// Sizes in bytes.
pub(super) const SIZE: Values<u64> = Values::new("SIZE", parse_size);

/// Reads sizes like [`parse_size`], up to the limit of a block.
///
/// Errors: a text that says what is wrong.
pub fn parse_block_len(text: &str) -> Result<u32, String> {
    u32::try_from(parse_size(text)?).map_err(|_| "too large for a block size".to_owned())
}

/// A switch that is taken back by `no-` before its name, which has this help.
#[cfg(feature = "pack")]
pub(super) const fn on_off(no: &'static str) -> Values<bool> {
    Values { takes: Takes::NothingOrNo(no), ..SWITCH }
}

fn read_switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("on or off is allowed".into()),
    }
}

/// Any text.
pub(super) const fn text(name: &'static str) -> Values<String> {
    Values::new(name, |text| Ok(text.to_owned()))
}

/// Paths of files of this machine.
pub(super) const fn file(name: &'static str) -> Values<PathBuf> {
    let read = |text: &OsStr| if text.is_empty() { Err("a path is needed".into()) } else { Ok(text.into()) };
    Values::bytes(name, read).naming(|text| Some(text.into()))
}

/// Values that their type reads.
pub(super) const fn parsed<T: FromStr<Err: Display>>(name: &'static str) -> Values<T> {
    Values::new(name, |text| text.parse().map_err(|error: T::Err| error.to_string()))
}

/// Words of a type.
#[cfg(feature = "pack")]
pub(super) const fn words<T: Words + FromStr<Err: Display>>(name: &'static str) -> Values<T> {
    parsed(name).among(|| T::WORDS.iter().map(|(word, _)| *word).collect())
}

/// Paths within an image.
#[cfg(feature = "pack")]
pub(super) const PATH: Values<ImagePath> = Values::bytes("PATH", |text| {
    ImagePath::parse(text.as_encoded_bytes()).map_err(|error| error.to_string())
});

/// Name and value of an option.
#[cfg(feature = "pack")]
pub(super) const NAME_AND_VALUE: Values<(String, String)> = Values::new("NAME=VALUE", name_and_value).many();

/// Reads `NAME=VALUE`.
///
/// Errors: a text that says so.
pub fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write NAME=VALUE".into()),
    }
}

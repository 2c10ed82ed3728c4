//! Completion of values for options that also accept others.

use clap::builder::{PossibleValue, TypedValueParser};
use packfs::Words;
use std::error::Error;
use std::ffi::OsStr;
use std::fmt::Display;
use std::str::FromStr;

/// Value parser with a list of some values for completion. The list is hidden in `--help`, whose
/// text names the values.
#[derive(Clone)]
pub struct Listed<T, E> {
    parse: fn(&str) -> Result<T, E>,
    values: fn() -> Vec<&'static str>,
}

/// Parses with `parse`; shells complete `values`.
pub fn listed<T, E>(parse: fn(&str) -> Result<T, E>, values: fn() -> Vec<&'static str>) -> Listed<T, E> {
    Listed { parse, values }
}

/// Accepts any text.
pub fn any(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Returns the names of formats that can be packed.
pub fn formats() -> Vec<&'static str> {
    let all = packfs::formats::all().iter();
    let can_pack = all.filter(|format| format.packer(&packfs::PackSettings::default()).is_ok());
    can_pack.map(|format| format.name()).collect()
}

/// Returns the names of codecs, and `none`.
pub fn codecs() -> Vec<&'static str> {
    let names = packfs::codec::CODECS.iter().map(|row| row.name);
    names.filter(|name| *name != "none").chain(["none"]).collect()
}

/// Parses the words of a type.
pub fn words<T: Words + FromStr<Err: Display>>() -> Listed<T, String> {
    let words = || T::WORDS.iter().map(|(word, _)| *word).collect();
    listed(|text| text.parse().map_err(|error: T::Err| error.to_string()), words)
}

impl<T, E> TypedValueParser for Listed<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Into<Box<dyn Error + Send + Sync + 'static>> + Clone + 'static,
{
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        self.parse.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.values)().into_iter().map(PossibleValue::new)))
    }
}

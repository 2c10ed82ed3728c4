//! Values that a shell completes, for options that take others, too.

use clap::builder::{PossibleValue, TypedValueParser};
use std::error::Error;
use std::ffi::OsStr;

/// A parser of values that names some of them. Options with it hide the list from `--help`, whose
/// words tell them.
#[derive(Clone)]
pub struct Listed<T, E> {
    parse: fn(&str) -> Result<T, E>,
    values: fn() -> Vec<&'static str>,
}

/// Parses with `parse`, and has shells complete `values`.
pub fn listed<T, E>(parse: fn(&str) -> Result<T, E>, values: fn() -> Vec<&'static str>) -> Listed<T, E> {
    Listed { parse, values }
}

/// Takes any text.
pub fn any(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Names of formats that images can be packed in.
pub fn formats() -> Vec<&'static str> {
    let all = packfs::formats::all().iter();
    let can_pack = all.filter(|format| format.packer(&packfs::PackSettings::default()).is_ok());
    can_pack.map(|format| format.name()).collect()
}

/// Names of codecs, and `none`.
pub fn codecs() -> Vec<&'static str> {
    let names = packfs::codec::CODECS.iter().map(|row| row.name);
    names.filter(|name| *name != "none").chain(["none"]).collect()
}

/// Names of goals.
pub fn goals() -> Vec<&'static str> {
    packfs::Goal::ALL.map(packfs::Goal::name).into()
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

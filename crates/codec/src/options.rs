//! Options of a codec: `LEVEL,KEY=VALUE,FLAG`, parsed by the codec, and printed again.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::SettingsError;
use crate::dictionary::Dictionary;

/// Level and options after a codec's name. The codec takes those it has; the rest is an error.
pub(crate) struct Options<'a> {
    codec: &'static str,
    level: Option<i32>,
    default_level: i32,
    left: Vec<&'a str>,
    dict: Dictionary,
}

impl<'a> Options<'a> {
    /// `level` is one that the codec has.
    pub(crate) fn new(
        codec: &'static str,
        level: Option<i32>,
        default_level: Option<i32>,
        options: impl Iterator<Item = &'a str>,
    ) -> Options<'a> {
        let default_level = default_level.unwrap_or_default();
        Options { codec, level, default_level, left: options.collect(), dict: Dictionary::Usual }
    }

    pub(crate) fn typed_level(&self) -> Option<i32> {
        self.level
    }

    pub(crate) fn level(&self) -> i32 {
        self.level.unwrap_or(self.default_level)
    }

    pub(crate) fn small_level(&self) -> u8 {
        u8::try_from(self.level()).unwrap_or(u8::MAX)
    }

    /// True if the flag `key` was given; errors if it has a value.
    pub(crate) fn flag(&mut self, key: &str) -> Result<bool, SettingsError> {
        Ok(self.take(key, false)?.is_some())
    }

    /// Parses a number; out of the type's range is the same error as out of the allowed one, which
    /// the codec checks.
    pub(crate) fn number<T: FromStr>(
        &mut self,
        key: &str,
        allowed: &str,
    ) -> Result<Option<T>, SettingsError> {
        let Some(text) = self.take(key, true)? else { return Ok(None) };
        let number = text.parse().map_err(|_| SettingsError::new(self.what(key), quoted(text), allowed))?;
        Ok(Some(number))
    }

    pub(crate) fn name<T: Copy>(
        &mut self,
        key: &str,
        known: &[(&str, T)],
    ) -> Result<Option<T>, SettingsError> {
        let Some(text) = self.take(key, true)? else { return Ok(None) };
        name(&self.what(key), text, known).map(Some)
    }

    /// Parses known names joined by `+`; empty if the option was not given.
    pub(crate) fn names<T: Copy + PartialEq>(
        &mut self,
        key: &str,
        known: &[(&str, T)],
    ) -> Result<Vec<T>, SettingsError> {
        let Some(text) = self.take(key, true)? else { return Ok(Vec::new()) };
        names(&self.what(key), text, known)
    }

    /// Parses a value with `read`, whose first argument names it in errors.
    pub(crate) fn value<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&str, &str) -> Result<T, SettingsError>,
    ) -> Result<Option<T>, SettingsError> {
        let Some(text) = self.take(key, true)? else { return Ok(None) };
        read(&self.what(key), text).map(Some)
    }

    /// Reads `dict=LENGTH`, which depends on the format and is resolved later.
    pub(crate) fn read_dictionary(&mut self) -> Result<(), SettingsError> {
        self.dict = self.value("dict", Dictionary::parse)?.unwrap_or(Dictionary::Usual);
        Ok(())
    }

    /// Returns the dictionary as given, or the first unknown option.
    pub(crate) fn finish(self) -> Result<Dictionary, &'a str> {
        match self.left.first() {
            Some(option) => Err(option),
            None => Ok(self.dict),
        }
    }

    /// Removes an option and returns its value, which is empty for a flag.
    fn take(&mut self, key: &str, has_value: bool) -> Result<Option<&'a str>, SettingsError> {
        let is_it = |option: &&str| match option.split_once('=') {
            Some((found, _)) => has_value && found == key,
            None => !has_value && *option == key,
        };
        let Some(at) = self.left.iter().position(is_it) else { return Ok(None) };
        let option = self.left.remove(at);
        if self.left.iter().any(is_it) {
            return Err(SettingsError::new(self.what(key), "two", "one"));
        }
        Ok(Some(option.split_once('=').map_or("", |(_, value)| value)))
    }

    fn what(&self, key: &str) -> String {
        format!("{} {key}", self.codec)
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

fn name<T: Copy>(what: &str, text: &str, known: &[(&str, T)]) -> Result<T, SettingsError> {
    known.iter().find(|(name, _)| *name == text).map(|&(_, value)| value).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        SettingsError::new(what, quoted(text), names.join(", "))
    })
}

/// Parses names joined by `+`; duplicates count once.
pub(crate) fn names<T: Copy + PartialEq>(
    what: &str,
    text: &str,
    known: &[(&str, T)],
) -> Result<Vec<T>, SettingsError> {
    let mut values = Vec::new();
    for part in text.split('+') {
        let value = name(what, part, known)?;
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Ok(values)
}

pub(crate) fn name_in<T: PartialEq>(known: &[(&'static str, T)], value: T) -> &'static str {
    known.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

/// Prints `prefix` and the names joined by `+`; nothing for an empty list.
pub(crate) fn print_names(
    f: &mut fmt::Formatter<'_>,
    prefix: &str,
    mut names: impl Iterator<Item = &'static str>,
) -> fmt::Result {
    let Some(first) = names.next() else { return Ok(()) };
    write!(f, "{prefix}{first}")?;
    names.try_for_each(|name| write!(f, "+{name}"))
}

pub(crate) fn quoted(text: &str) -> String {
    format!("`{text}`")
}

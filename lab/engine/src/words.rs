//! Words that name values.

use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde::de::value::{Error, StrDeserializer};

/// Returns the value that files spell so; none if there is no such word.
pub(crate) fn named<'a, T: Deserialize<'a>>(name: &'a str) -> Option<T> {
    let word: StrDeserializer<'_, Error> = name.into_deserializer();
    T::deserialize(word).ok()
}

//! Words that name values, and errors in one line.

use packfs::Error;
use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde::de::value::{Error as NoSuchWord, StrDeserializer};

/// Returns the value that files spell so; none if there is no such word.
pub(crate) fn named<'a, T: Deserialize<'a>>(name: &'a str) -> Option<T> {
    let word: StrDeserializer<'_, NoSuchWord> = name.into_deserializer();
    T::deserialize(word).ok()
}

/// Spells an error with its hints:
/// `there is no device "floppy"; disk and memory are the machine's own`.
pub fn one_line(error: &Error) -> String {
    [&[error.to_string()], error.hints()].concat().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_stand_behind_the_error() {
        assert_eq!(one_line(&Error::failed("it fails")), "it fails");
        assert_eq!(
            one_line(&Error::failed("it fails").hint("do this").hint("or that")),
            "it fails; do this; or that"
        );
    }
}

//! What is wrong with a line, before anybody knows which line of which manifest it is.

use packfs_core::Error;
use std::fmt;

/// A fault: found, allowed, and perhaps advice. [`Fault::at`] adds where.
#[derive(Debug)]
pub(crate) struct Fault {
    text: String,
    hint: Option<&'static str>,
}

impl Fault {
    /// What was found, and what is allowed.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Fault { text: text.into(), hint: None }
    }

    /// Adds a line of advice.
    #[must_use]
    pub(crate) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// The error at a place such as `root.manifest:12`.
    pub(crate) fn at(self, place: impl fmt::Display) -> Error {
        Fault::advised(Error::corrupt("manifest", self.text).at(place), self.hint)
    }

    /// The error of a line that stands in no manifest, but was given on its own.
    pub(crate) fn usage_at(self, place: impl fmt::Display) -> Error {
        Fault::advised(Error::usage(self.text).at(place), self.hint)
    }

    fn advised(error: Error, hint: Option<&'static str>) -> Error {
        hint.into_iter().fold(error, Error::hint)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

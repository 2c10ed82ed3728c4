//! Faults of a line, before its position is known.

use packfs_core::Error;
use std::fmt;

/// [`Fault::at`] adds the position.
#[derive(Debug)]
pub(crate) struct Fault {
    text: String,
    hint: Option<&'static str>,
}

impl Fault {
    /// `text` names the value found and those allowed.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Fault { text: text.into(), hint: None }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// `place` is a position such as `root.manifest:12`.
    pub(crate) fn at(self, place: impl fmt::Display) -> Error {
        Fault::advised(Error::corrupt("manifest", self.text).at(place), self.hint)
    }

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

//! What is wrong with a member of an archive, before anybody knows which archive it is.

use packfs_core::Error;

/// A fault: found, allowed, and perhaps advice. [`Fault::into_error`] adds where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Whether the archive may be fine, but holds what packfs or Linux does not know.
    unsupported: bool,
    text: String,
    hint: Option<&'static str>,
}

impl Fault {
    /// The archive breaks the rules of tar.
    pub(super) fn corrupt(text: impl Into<String>) -> Self {
        Fault { unsupported: false, text: text.into(), hint: None }
    }

    /// The archive holds what cannot be taken over.
    pub(super) fn unsupported(text: impl Into<String>) -> Self {
        Fault { unsupported: true, text: text.into(), hint: None }
    }

    /// Adds a line of advice.
    #[must_use]
    pub(super) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// The error: `subject` is the archive, `place` where in it.
    pub(super) fn into_error(self, subject: &str, place: impl std::fmt::Display) -> Error {
        let text = format!("{place}: {}", self.text);
        let error =
            if self.unsupported { Error::unsupported(subject, text) } else { Error::corrupt(subject, text) };
        match self.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

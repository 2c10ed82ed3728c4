//! Checks every structure of an image and names all faults it can reach, not only the first.
//!
//! Owns the order of the checks and how findings are told. File data is not decoded here. Invariant: ends for every
//! image, in time and memory bounded by what the image really holds.

mod layout;
mod tree;

use crate::reader::Reader;
use packfs_core::{Error, ErrorKind, Finding, Result, Severity};
use std::fmt::Display;

/// Findings after which a check gives up: an image with more is beyond describing.
const FINDINGS_MAX: u64 = 10_000;

/// Hands findings on, up to a limit.
pub(crate) struct Report<'a> {
    found: &'a mut dyn FnMut(Finding),
    count: u64,
}

impl Report<'_> {
    /// Whether there is no room for more.
    fn is_full(&self) -> bool {
        self.count >= FINDINGS_MAX
    }

    fn push(&mut self, severity: Severity, place: impl Display, fault: impl Display) {
        self.count += 1;
        match self.count {
            ..FINDINGS_MAX => {
                (self.found)(Finding { severity, place: place.to_string(), fault: fault.to_string() });
            }
            FINDINGS_MAX => (self.found)(Finding {
                severity: Severity::Error,
                place: "image".into(),
                fault: format!("{FINDINGS_MAX} findings; the check ends here"),
            }),
            _ => {}
        }
    }

    /// Odd, but every reader copes.
    pub(crate) fn note(&mut self, place: impl Display, fault: impl Display) {
        self.push(Severity::Note, place, fault);
    }

    /// Some readers will stumble.
    pub(crate) fn warn(&mut self, place: impl Display, fault: impl Display) {
        self.push(Severity::Warning, place, fault);
    }

    /// The rules of the format are broken.
    pub(crate) fn error(&mut self, place: impl Display, fault: impl Display) {
        self.push(Severity::Error, place, fault);
    }

    /// Makes a finding of what the reader refused; passes other errors, such as unreadable files, on.
    pub(crate) fn refused<T>(&mut self, place: impl Display, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if is_fault_of_image(&error) => {
                let text = error.to_string();
                self.error(place, text.strip_prefix("corrupt erofs image: ").unwrap_or(&text));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn is_fault_of_image(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported)
}

/// Counts what would be tiresome to hear of one by one, and tells it once with an example.
#[derive(Default)]
pub(crate) struct Tally {
    count: u64,
    example: String,
}

impl Tally {
    /// Counts one; `example` is only asked for the first.
    pub(crate) fn add(&mut self, example: impl FnOnce() -> String) {
        if self.count == 0 {
            self.example = example();
        }
        self.count += 1;
    }

    /// The sentence to tell, if there is anything to.
    pub(crate) fn told(&self, what: &str) -> Option<String> {
        match self.count {
            0 => None,
            1 => Some(format!("{what}: {}", self.example)),
            count => Some(format!("{what}: {count} of them, the first is {}", self.example)),
        }
    }
}

impl Reader {
    /// See [`packfs_core::Volume::check`].
    pub(crate) fn check_all(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report { found, count: 0 };
        self.check_super_block(&mut report)?;
        let seen = tree::check(self, &mut report)?;
        self.check_features(&seen, &mut report);
        self.check_space(seen, &mut report)
    }
}

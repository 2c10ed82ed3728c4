//! Report of a check's findings, up to a limit.

use crate::{Finding, Severity, units::*};
use packfs_core::{Error, ErrorKind, Result};
use std::fmt::Display;

/// Findings after which a check stops.
const FINDINGS_MAX: u64 = 10_000;

/// Passes on findings, up to a limit.
pub struct Report<'a> {
    found: &'a mut dyn FnMut(Finding),
    /// Prefix of the format's errors, which findings omit.
    prefix: String,
    count: u64,
}

impl<'a> Report<'a> {
    /// Returns a report for an image of `format`, as named in the reader's errors.
    pub fn new(format: &str, found: &'a mut dyn FnMut(Finding)) -> Self {
        Report { found, prefix: format!("corrupt {format} image: "), count: 0 }
    }

    /// True if the limit of findings is reached.
    pub fn is_full(&self) -> bool {
        self.count >= FINDINGS_MAX
    }

    fn push(&mut self, severity: Severity, place: impl Display, fault: impl Display) {
        self.count = self.count.plus(1);
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

    /// Adds an oddity that no reader is affected by.
    pub fn note(&mut self, place: impl Display, fault: impl Display) {
        self.push(Severity::Note, place, fault);
    }

    /// Adds a fault that affects some readers.
    pub fn warn(&mut self, place: impl Display, fault: impl Display) {
        self.push(Severity::Warning, place, fault);
    }

    /// Adds a violation of the format's rules.
    pub fn error(&mut self, place: impl Display, fault: impl Display) {
        self.push(Severity::Error, place, fault);
    }

    /// Turns corruption into a finding, and returns `None` for it.
    ///
    /// # Errors
    ///
    /// All other errors, such as an unreadable file.
    pub fn refused<T>(&mut self, place: impl Display, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if is_fault_of_image(&error) => {
                let text = error.to_string();
                let fault = text.strip_prefix(&self.prefix).unwrap_or(&text).to_owned();
                self.error(place, fault);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn is_fault_of_image(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_with_a_finding_about_the_end() {
        let mut told = Vec::new();
        let mut found = |finding: Finding| told.push(finding.fault);
        let mut report = Report::new("test", &mut found);
        for number in 0..2 * FINDINGS_MAX {
            assert_eq!(report.is_full(), number >= FINDINGS_MAX);
            report.note("here", number);
        }
        assert_eq!(told.len() as u64, FINDINGS_MAX);
        assert_eq!(told.last().unwrap(), "10000 findings; the check ends here");
    }

    #[test]
    fn reports_faults_of_the_image_and_forwards_others() {
        let mut told = Vec::new();
        let mut found = |finding: Finding| told.push((finding.place, finding.fault));
        let mut report = Report::new("test", &mut found);
        assert_eq!(report.refused("x", Ok(7)).unwrap(), Some(7));
        let corrupt = Error::corrupt("test image", "inode at 16 is odd");
        let text = corrupt.to_string();
        assert_eq!(report.refused("x", Err::<(), _>(corrupt)).unwrap(), None);
        assert!(report.refused("x", Err::<(), _>(Error::failed("no such device"))).is_err());
        let [(place, fault)] = &told[..] else { panic!("{told:?}") };
        assert_eq!(place, "x");
        assert_eq!(format!("corrupt test image: {fault}"), text);
    }
}

//! Assertions on the verdicts of a reader and a check on a damaged image.

use packfs_core::{ErrorKind, Result};
use packfs_format::{Finding, Severity};

/// Holds a refusal to its kind, and to words that it has to say.
///
/// Panics if nothing was refused, or otherwise.
#[track_caller]
pub fn assert_refused<T>(outcome: Result<T>, kind: ErrorKind, expected: &str) {
    let error = outcome.err().unwrap_or_else(|| panic!("the image was read, {expected:?} was expected"));
    assert_eq!(error.kind(), kind, "{error}");
    let text = error.to_string();
    assert!(text.contains(expected), "{text:?} says {expected:?}");
}

/// Holds findings to one of that severity that says these words, of its place or of its fault.
///
/// Panics if there is none.
#[track_caller]
pub fn assert_found(findings: &[Finding], severity: Severity, expected: &str) {
    let text = |finding: &Finding| format!("{}: {}", finding.place, finding.fault);
    let matching = findings.iter().find(|finding| text(finding).contains(expected));
    let matching = matching.unwrap_or_else(|| panic!("{expected:?} in {findings:#?}"));
    assert_eq!(matching.severity, severity, "{matching:?}");
}

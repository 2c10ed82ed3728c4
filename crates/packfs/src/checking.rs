//! Checks of an opened image: its structures, and the data of its files.

use crate::Opened;
use crate::unread::unread;
use packfs_check::ContentReport;
use packfs_core::{Error, ErrorKind, Progress, Result, Stage, WithoutWarnings};
use packfs_format::{Finding, Severity};

/// Limit on kept findings.
const FINDINGS_MAX: usize = 1000;

/// Findings of a check, at most 1,000 of them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Findings {
    /// Findings, in the order found.
    pub findings: Vec<Finding>,
    /// Errors, kept or not.
    pub errors: u64,
    /// Findings that were not kept.
    pub left_out: u64,
    /// Parts of the image that were not checked, because nothing was read of them; each is a
    /// finding, too.
    pub unchecked: u64,
    /// Files that cannot be decoded, as findings name them.
    pub damaged: Vec<String>,
}

/// Report of a check, as documents have it.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CheckReport<'a> {
    /// True without errors, if all of the image was checked.
    pub sound: bool,
    /// Number of errors.
    pub errors: u64,
    /// Findings, at most 1,000.
    pub findings: &'a [Finding],
    /// Number of further findings.
    pub findings_left_out: u64,
    /// Result of decoding, if that was asked for and possible.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub content: Option<ContentReport>,
}

impl Findings {
    /// Returns them as a report, with the result of decoding.
    pub fn report(&self, content: Option<ContentReport>) -> CheckReport<'_> {
        CheckReport {
            sound: self.is_sound(),
            errors: self.errors,
            findings: &self.findings,
            findings_left_out: self.left_out,
            content,
        }
    }

    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        if finding.severity == Severity::Error {
            self.errors += 1;
        }
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    /// Returns true without errors, if all of the image was checked.
    pub fn is_sound(&self) -> bool {
        self.errors == 0 && self.unchecked == 0
    }

    /// Adds a finding about the whole image.
    pub(crate) fn note(&mut self, severity: Severity, fault: String) {
        self.add(Finding::new(severity, "image", fault));
    }

    /// An image so damaged that the check could not go on is a finding like others; everything else
    /// is an error.
    pub(crate) fn or_finding<T>(&mut self, outcome: Result<T>) -> Result<Option<T>> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                self.note(Severity::Error, error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl Opened {
    /// Checks the structures of the image and of the containers it lies in, and with `data` decodes
    /// all of its files. Damage is added to `found`. Returns the result of decoding, if that was
    /// possible.
    ///
    /// Errors: `Io`, `Limit`, `Cancelled`.
    pub fn check(
        &self,
        data: bool,
        progress: &dyn Progress,
        found: &mut Findings,
    ) -> Result<Option<ContentReport>> {
        progress.begin(Stage::Verify, 0, 0);
        for container in self.containers() {
            let name = container.format().name;
            let structure = container.check(&mut |finding| {
                let place = format!("{name}: {}", finding.place);
                found.add(Finding::new(finding.severity, place, finding.fault));
            });
            found.or_finding(structure)?;
        }
        let structure = self.volume().check(&mut |finding| found.add(finding));
        found.or_finding(structure)?;
        for part in found.or_finding(unread(self))?.unwrap_or_default() {
            found.unchecked += 1;
            found.note(Severity::Warning, format!("not checked: {part}"));
        }
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        if !data {
            return Ok(None);
        }
        let loaded = self.load_what_is_there(&WithoutWarnings(progress));
        let Some(mut loaded) = found.or_finding(loaded)? else { return Ok(None) };
        // The check of the structure has told of the same, and of where it is.
        let faults = std::mem::take(&mut loaded.faults);
        if found.errors == 0 {
            match faults.into_result() {
                Err(error) if error.kind() == ErrorKind::Failed => {
                    found.note(Severity::Error, error.to_string());
                }
                outcome => drop(found.or_finding(outcome)?),
            }
        }
        let content = packfs_check::content(self.engine(), &loaded, progress, &mut |finding| {
            found.damaged.push(finding.place.clone());
            found.add(finding);
        });
        self.volume().remarks().into_iter().for_each(|remark| found.note(Severity::Warning, remark));
        found.or_finding(content)
    }
}

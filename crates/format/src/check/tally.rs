//! Findings of one kind, reported together.

use super::Report;
use crate::units::*;

/// Counts findings, and reports them in one line with an example.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    count: u64,
    example: String,
}

impl Tally {
    /// Counts one; `example` is only called for the first.
    pub fn add(&mut self, example: impl FnOnce() -> String) {
        if self.count == 0 {
            self.example = example();
        }
        self.count = self.count.plus(1);
    }

    /// Adds the line to the report as a note, if anything was counted.
    pub fn note(&self, report: &mut Report<'_>, place: &str, what: &str) {
        if let Some(fault) = self.one_line(what) {
            report.note(place, fault);
        }
    }

    /// Adds the line to the report as a warning, if anything was counted.
    pub fn warn(&self, report: &mut Report<'_>, place: &str, what: &str) {
        if let Some(fault) = self.one_line(what) {
            report.warn(place, fault);
        }
    }

    /// Adds the line to the report as an error, if anything was counted.
    pub fn error(&self, report: &mut Report<'_>, place: &str, what: &str) {
        if let Some(fault) = self.one_line(what) {
            report.error(place, fault);
        }
    }

    /// Returns the line, if anything was counted.
    pub fn one_line(&self, what: &str) -> Option<String> {
        match self.count {
            0 => None,
            1 => Some(format!("{what}: {}", self.example)),
            count => Some(format!("{what}: {count} of them, the first is {}", self.example)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_the_number_and_the_first() {
        let mut tally = Tally::default();
        assert_eq!(tally.one_line("holes"), None);
        tally.add(|| "a".into());
        assert_eq!(tally.one_line("holes").unwrap(), "holes: a");
        tally.add(|| "b".into());
        assert_eq!(tally.one_line("holes").unwrap(), "holes: 2 of them, the first is a");
    }
}

//! Findings that many members of an archive may give rise to, and that are told once.

use packfs_core::Progress;

/// The first finding of its kind, and the number of all.
#[derive(Default)]
pub(crate) struct Told {
    first: Option<String>,
    count: u64,
}

impl Told {
    /// Notes a finding.
    pub(crate) fn add(&mut self, finding: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(finding);
    }

    /// Warns of the first one and of their number.
    pub(crate) fn warn(&self, progress: &dyn Progress) {
        let Some(first) = &self.first else { return };
        let rest = match self.count - 1 {
            0 => String::new(),
            rest => format!(" (and {rest} more)"),
        };
        progress.warn(&format!("{first}{rest}"));
    }
}

//! Findings that recur for many members of an archive, and are reported once.

use packfs_core::Progress;

#[derive(Default)]
pub(crate) struct Told {
    first: Option<String>,
    count: u64,
}

impl Told {
    pub(crate) fn add(&mut self, finding: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(finding);
    }

    pub(crate) fn warn(&self, progress: &dyn Progress) {
        let Some(first) = &self.first else { return };
        let rest = match self.count - 1 {
            0 => String::new(),
            rest => format!(" (and {rest} more)"),
        };
        progress.warn(&format!("{first}{rest}"));
    }
}

//! Attributes and files that could not be restored, counted by kind with a few examples.

use packfs_core::{Error, ImagePath, Progress, Result};
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Examples kept of each kind.
const EXAMPLES_MAX: usize = 3;
/// Most failures reported by name, including the one that becomes the result.
const FAILURES_TOLD: u64 = 16;

/// Kind of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LossKind {
    /// The owner or group.
    Owner,
    /// The set-user-id or set-group-id bit, omitted because the owner was not restored.
    SetId,
    /// The permissions.
    Mode,
    /// The modification time.
    Time,
    /// An extended attribute.
    Xattr,
    /// A device node.
    Device,
    /// A FIFO or socket that the target's filesystem does not support.
    SpecialFile,
}

impl LossKind {
    const ALL: [LossKind; 7] = [
        LossKind::Owner,
        LossKind::SetId,
        LossKind::Mode,
        LossKind::Time,
        LossKind::Xattr,
        LossKind::Device,
        LossKind::SpecialFile,
    ];

    /// Returns the plural for messages and documents, such as `owners`.
    pub fn words(self) -> &'static str {
        match self {
            LossKind::Owner => "owners",
            LossKind::SetId => "set-id bits",
            LossKind::Mode => "permissions",
            LossKind::Time => "times",
            LossKind::Xattr => "extended attributes",
            LossKind::Device => "device nodes",
            LossKind::SpecialFile => "fifos and sockets",
        }
    }
}

/// Attribute that could not be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct NotRestored {
    /// The attribute.
    #[cfg_attr(feature = "serde", serde(rename = "what"))]
    pub kind: LossKind,
    /// Number of files concerned.
    pub count: u64,
    /// The first few of them.
    pub examples: Vec<NotRestoredExample>,
}

/// File of which an attribute could not be restored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct NotRestoredExample {
    /// Path in the image.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub path: ImagePath,
    /// Cause.
    pub why: String,
}

#[cfg(feature = "serde")]
packfs_core::serialize_word!(LossKind, words);

impl fmt::Display for NotRestored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} not restored", self.count, self.kind.words())?;
        if let Some(NotRestoredExample { path, why }) = self.examples.first() {
            write!(f, ", such as {path:?}: {why}")?;
        }
        Ok(())
    }
}

#[derive(Default)]
pub(super) struct Losses {
    rows: Mutex<Vec<NotRestored>>,
}

impl Losses {
    /// `path` and `why` are evaluated only for examples.
    pub(super) fn add(&self, kind: LossKind, path: impl FnOnce() -> ImagePath, why: impl fmt::Display) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let row = match rows.iter().position(|row| row.kind == kind) {
            Some(found) => &mut rows[found],
            None => {
                rows.push(NotRestored { kind, count: 0, examples: Vec::new() });
                rows.last_mut().expect("just pushed")
            }
        };
        row.count += 1;
        if row.examples.len() < EXAMPLES_MAX {
            row.examples.push(NotRestoredExample { path: path(), why: why.to_string() });
        }
    }

    /// Rows in the order of [`LossKind`], examples by path.
    pub(super) fn into_rows(self) -> Vec<NotRestored> {
        let mut rows = self.rows.into_inner().unwrap_or_else(PoisonError::into_inner);
        rows.sort_by_key(|row| LossKind::ALL.iter().position(|&kind| kind == row.kind));
        for row in &mut rows {
            row.examples.sort();
        }
        rows
    }
}

#[derive(Default)]
pub(super) struct Failures {
    found: Mutex<Option<(Error, u64)>>,
}

impl Failures {
    /// The first failure becomes the result, some others are warnings: each once.
    pub(super) fn add(&self, error: Error, progress: &dyn Progress) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *found {
            Some((_, count)) => {
                *count += 1;
                if *count <= FAILURES_TOLD {
                    progress.warn(&error.to_string());
                }
            }
            None => *found = Some((error, 1)),
        }
    }

    /// The first error, with the number of failures and of those that were not reported.
    pub(super) fn into_result(self) -> Result<()> {
        let found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        match found {
            None => Ok(()),
            Some((error, 1)) => Err(error.hint("this file was skipped; all others are in place")),
            Some((error, count)) => {
                let others = match count.saturating_sub(FAILURES_TOLD) {
                    0 => "the others named above".to_owned(),
                    untold => format!("{} named above and {untold} more", FAILURES_TOLD - 1),
                };
                Err(error
                    .hint(format!("{count} files were skipped, {others}; all further ones are in place")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts warnings.
    #[derive(Default)]
    struct Counting(Mutex<u64>);

    impl Progress for Counting {
        fn warn(&self, _: &str) {
            *self.0.lock().unwrap() += 1;
        }
    }

    fn told(failures: u64) -> (u64, Vec<String>) {
        let (failed, counting) = (Failures::default(), Counting::default());
        (0..failures).for_each(|number| failed.add(Error::failed(number), &counting));
        let error = failed.into_result().unwrap_err();
        assert_eq!(error.to_string(), "0");
        (counting.0.into_inner().unwrap(), error.hints().to_vec())
    }

    #[test]
    fn the_first_failures_are_named_and_all_are_counted() {
        assert_eq!(told(1), (0, vec!["this file was skipped; all others are in place".to_owned()]));
        let hint = |count, others| {
            vec![format!("{count} files were skipped, {others}; all further ones are in place")]
        };
        assert_eq!(told(16), (15, hint(16, "the others named above")));
        assert_eq!(told(65_010), (15, hint(65_010, "15 named above and 64994 more")));
    }
}

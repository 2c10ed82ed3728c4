//! Watchers, in builders that are copied and shown.

use packfs_core::{Progress, Silent};
use std::fmt;
use std::sync::Arc;

/// A progress that was given, or none.
#[derive(Clone, Default)]
pub(crate) struct Watcher(Option<Arc<dyn Progress>>);

impl Watcher {
    pub(crate) fn new(progress: impl Progress + 'static) -> Self {
        Watcher(Some(Arc::new(progress)))
    }

    /// The one that was given; else one that watches nothing.
    pub(crate) fn progress(&self) -> &dyn Progress {
        self.0.as_deref().unwrap_or(&Silent)
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "watched" } else { "unwatched" })
    }
}

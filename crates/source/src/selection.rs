//! Decisions of callers about paths.

use packfs_core::ImagePath;
use std::sync::Arc;

/// A decision of the caller about each path of a source: true excludes it, with everything below.
///
/// A directory of this machine is not entered if it is excluded. Other sources ask about every
/// entry by its whole path, so the function has to look at the directories above, too.
#[derive(Clone)]
pub struct Selection(Arc<dyn Fn(&ImagePath) -> bool + Send + Sync>);

impl Selection {
    /// Excludes the paths for which `excludes` returns true.
    pub fn new(excludes: impl Fn(&ImagePath) -> bool + Send + Sync + 'static) -> Self {
        Selection(Arc::new(excludes))
    }

    pub(crate) fn excludes(&self, path: &ImagePath) -> bool {
        !path.is_root() && (self.0)(path)
    }
}

impl std::fmt::Debug for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Selection")
    }
}

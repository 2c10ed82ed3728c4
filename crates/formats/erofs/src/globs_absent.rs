//! Globs of rules in a build without the feature `globs`: none compiles.

use packfs_core::{Error, ImagePath, Result};

/// A glob of paths, of which there are none.
#[derive(Clone, Debug)]
pub(crate) enum Globs {}

impl Globs {
    /// Refuses.
    ///
    /// Errors: `Usage`.
    pub(crate) fn compile(glob: &str) -> Result<Self> {
        Err(Error::usage(format!("glob {glob:?}: this build was made without rules by path")))
    }

    /// True if a path is meant.
    pub(crate) fn match_path(&self, _: &ImagePath) -> bool {
        match *self {}
    }
}

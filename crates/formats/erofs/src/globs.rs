//! Globs of rules, compiled.

use globset::{Candidate, GlobBuilder, GlobMatcher};
use packfs_core::{Error, ImagePath, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// A glob of paths, and the glob of everything below.
#[derive(Clone, Debug)]
pub(crate) struct Globs([GlobMatcher; 2]);

impl Globs {
    /// A glob that holds no slash is about names anywhere; one that matches a directory is about
    /// all below it.
    ///
    /// Errors: `Usage`.
    pub(crate) fn compile(glob: &str) -> Result<Self> {
        let anchored = glob.trim_start_matches('/').trim_end_matches('/');
        let anywhere = if glob.contains('/') { anchored.to_owned() } else { format!("**/{anchored}") };
        let build = |glob: &str| {
            let built = GlobBuilder::new(glob).literal_separator(true).build();
            built
                .map(|glob| glob.compile_matcher())
                .map_err(|fault| Error::usage(format!("glob {glob:?}: {fault}")))
        };
        Ok(Globs([build(&anywhere)?, build(&format!("{anywhere}/**"))?]))
    }

    /// True if a path is meant.
    pub(crate) fn match_path(&self, path: &ImagePath) -> bool {
        let path = Candidate::new(OsStr::from_bytes(path.as_bytes()));
        self.0.iter().any(|glob| glob.is_match_candidate(&path))
    }
}

//! Globs of rules.

use packfs_core::{Dialect, Error, Glob, ImagePath, Result};

const DIALECT: Dialect = Dialect { is_of_paths: true, braces: true, ..Dialect::PLAIN };

#[derive(Clone, Debug)]
pub(crate) struct Globs([Glob; 2]);

impl Globs {
    /// A glob without a slash matches names anywhere; one that matches a directory also matches
    /// everything below it.
    ///
    /// Errors: `Usage`.
    pub(crate) fn compile(glob: &str) -> Result<Self> {
        let anchored = glob.trim_start_matches('/').trim_end_matches('/');
        let anywhere = if glob.contains('/') { anchored.to_owned() } else { format!("**/{anchored}") };
        let globs = [&*anywhere, &format!("{anywhere}/**")].map(|glob| Glob::new(glob.as_bytes(), DIALECT));
        if globs.iter().any(Glob::is_unclosed) {
            return Err(Error::usage(format!("glob {glob:?}: nothing closes a [ or {{"))
                .hint("a backslash before it makes it literal"));
        }
        Ok(Globs(globs))
    }

    pub(crate) fn match_path(&self, path: &ImagePath) -> bool {
        self.0.iter().any(|glob| glob.is_match(path.as_bytes()))
    }
}

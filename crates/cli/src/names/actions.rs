//! Actions of mksquashfs: changes of the files that an expression selects.

use super::parse::Given;
use packfs::source::Loaded;
use packfs::{Error, Result};
use std::path::PathBuf;

/// Options that give actions.
const OPTIONS: [&str; 8] = [
    "-action",
    "-log-action",
    "-true-action",
    "-false-action",
    "-action-file",
    "-log-action-file",
    "-true-action-file",
    "-false-action-file",
];

/// All actions of a command line.
#[derive(Debug, Default)]
pub struct Actions;

impl Actions {
    /// Reads the options.
    ///
    /// Errors: `Usage`.
    pub fn of(given: &Given) -> Result<Self> {
        match OPTIONS.iter().find(|option| given.has(option)) {
            Some(option) => Err(Error::usage(format!("{option} is not supported"))
                .hint("packfs pack has --exclude, --mode, --owner, -O rule= and --add for that")),
            None => Ok(Actions),
        }
    }

    /// Applies them.
    ///
    /// Errors: those of building a tree.
    pub fn apply(&self, loaded: Loaded, _sources: &[PathBuf]) -> Result<Loaded> {
        Ok(loaded)
    }
}

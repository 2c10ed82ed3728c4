//! Attempts that failed.

use packfs_core::Error;
use std::time::Duration;

/// Attempt that failed.
pub(crate) enum Failure {
    /// Another attempt cannot help.
    Final(Error),
    /// Another attempt may help, after a wait that the server asks for.
    Temporary { words: String, wait: Option<Duration>, has_progressed: bool },
    /// Nothing was reached; another attempt may help if there is a server.
    Unreached(String),
}

impl Failure {
    pub(crate) fn temporary(words: impl Into<String>) -> Self {
        Failure::Temporary { words: words.into(), wait: None, has_progressed: false }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Final(error)
    }
}

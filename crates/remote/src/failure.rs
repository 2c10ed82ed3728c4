//! Attempts that failed.

use packfs_core::Error;
use rustix::io::Errno;
use std::time::Duration;

/// Attempt that failed.
pub(crate) enum Failure {
    /// Another attempt cannot help.
    Final(Error),
    /// Another attempt may help, after a wait that the server asks for.
    Temporary { words: String, wait: Option<Duration>, has_progressed: bool, errno: Option<Errno> },
    /// Nothing was reached; another attempt may help if there is a server.
    Unreached { words: String, errno: Option<Errno> },
}

impl Failure {
    pub(crate) fn temporary(words: impl Into<String>) -> Self {
        Failure::Temporary { words: words.into(), wait: None, has_progressed: false, errno: None }
    }

    /// A status of an answer that may be another one later.
    pub(crate) fn answered(words: String, status: u16, wait: Option<Duration>) -> Self {
        Failure::Temporary { words, wait, has_progressed: false, errno: errno_of(status) }
    }
}

/// Returns the error number that a call for a file would have where a server answers with a status.
fn errno_of(status: u16) -> Option<Errno> {
    match status {
        401 | 403 => Some(Errno::ACCESS),
        404 | 410 => Some(Errno::NOENT),
        408 | 504 => Some(Errno::TIMEDOUT),
        _ => None,
    }
}

/// Gives an error the number for a status.
pub(crate) fn of_status(error: Error, status: u16) -> Error {
    errno_of(status).into_iter().fold(error, Error::with_errno)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Final(error)
    }
}

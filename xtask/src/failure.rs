//! Why a command of this tool stopped.
//!
//! A message for a person and an exit code, nothing to match on: no caller recovers from one.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

pub type Result<T> = std::result::Result<T, Failure>;

/// What went wrong, told to a person.
#[derive(Debug)]
pub struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// The work could not be done, or a check did not hold: exit code 1.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 1 }
    }

    /// The command line makes no sense: exit code 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 2 }
    }

    /// Reading, writing or making `path` failed; `verb` completes "cannot ...".
    pub fn io(verb: &str, path: &Path, error: impl fmt::Display) -> Self {
        Self::new(format!("cannot {verb} {}: {error}", path.display()))
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

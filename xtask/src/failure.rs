//! The error type of this tool: a message and an exit code. No caller recovers from it.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

pub type Result<T> = std::result::Result<T, Failure>;

#[derive(Debug)]
pub struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// A failed task or check: exit code 1.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 1 }
    }

    /// A usage error: exit code 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 2 }
    }

    /// An I/O error at `path`; `verb` completes "cannot ...".
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

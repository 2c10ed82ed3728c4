//! One error type for the whole product: what, where, found, allowed, and a hint.

use rustix::io::Errno;
use std::fmt;
use std::io;
use std::sync::Arc;

/// `Result` with [`Error`] of packfs.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Kind of failure, for decisions of users and scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A system call failed: a file, a device, permissions, a full disk.
    Io,
    /// The request cannot be completed with this input.
    Failed,
    /// A requested path does not exist in the image. A missing file of this machine is `Io`.
    NotFound,
    /// The destination exists and must not be replaced.
    AlreadyExists,
    /// The request itself is invalid.
    Usage,
    /// The input violates its format.
    Corrupt,
    /// The input may be valid, but packfs does not support it.
    Unsupported,
    /// The input exceeds a limit ([`crate::Limits`]), which can be raised.
    Limit,
    /// The data is longer than allowed, or than its destination.
    TooLarge,
    /// The user requested cancellation.
    Cancelled,
}

impl ErrorKind {
    /// Returns the exit code of the `packfs` program: 1 failed, 2 usage, 3 corrupt, 4 unsupported.
    pub fn exit_code(self) -> u8 {
        match self {
            ErrorKind::Io
            | ErrorKind::Failed
            | ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::Limit
            | ErrorKind::TooLarge => 1,
            ErrorKind::Usage => 2,
            ErrorKind::Corrupt => 3,
            ErrorKind::Unsupported => 4,
            ErrorKind::Cancelled => 130,
        }
    }
}

/// An error: its kind, a message with object, location, found and allowed values, and hints.
///
/// Messages are lower case without a full stop: `corrupt squashfs image: inode table block at
/// 0x1a2c00: length 9000, at most 8192 allowed`.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    hints: Vec<String>,
    source: Option<Arc<io::Error>>,
    errno: Option<i32>,
}

impl Error {
    fn new(kind: ErrorKind, message: String) -> Self {
        Error(Box::new(Inner { kind, message, hints: Vec::new(), source: None, errno: None }))
    }

    /// Creates an error of the operating system; `action` is such as `cannot read "a.sqfs"`.
    pub fn io(action: impl fmt::Display, source: io::Error) -> Self {
        let mut error = Error::new(ErrorKind::Io, action.to_string());
        if source.kind() == io::ErrorKind::StorageFull {
            error = error.hint("the disk is full; free some space or write to another one");
        }
        error.0.source = Some(Arc::new(source));
        error
    }

    /// Creates an error of a request that cannot be completed.
    pub fn failed(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Failed, message.to_string())
    }

    /// Creates an error of a requested path that does not exist in the image.
    pub fn not_found(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::NotFound, message.to_string())
    }

    /// Creates an error of a destination that exists and must not be replaced.
    pub fn already_exists(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::AlreadyExists, message.to_string())
    }

    /// Creates an error of an invalid request.
    pub fn usage(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Usage, message.to_string())
    }

    /// Creates an error of an invalid input: `subject` is such as `squashfs image`, `fault` names
    /// location, found, and allowed values.
    pub fn corrupt(subject: impl fmt::Display, fault: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Corrupt, format!("corrupt {subject}: {fault}"))
    }

    /// Creates an error of an input that uses an unsupported feature.
    pub fn unsupported(subject: impl fmt::Display, what: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Unsupported, format!("unsupported {subject}: {what}"))
    }

    /// Creates an error of an input that exceeds a limit: `fault` names the found and the allowed
    /// value.
    pub fn limit(subject: impl fmt::Display, fault: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Limit, format!("{subject} over a limit: {fault}"))
    }

    /// Creates an error of data that is too long: `message` names its length and the allowed one.
    pub fn too_large(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::TooLarge, message.to_string())
    }

    /// Creates an error of cancelled work.
    pub fn cancelled() -> Self {
        Error::new(ErrorKind::Cancelled, "cancelled".into())
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.0.hints.push(hint.to_string());
        self
    }

    /// Prepends `place` to the message: `"usr/bin/sh": corrupt ...`.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.0.message = format!("{place}: {}", self.0.message);
        self
    }

    /// Sets the error number, if it is more specific than the kind.
    #[must_use]
    pub fn with_errno(mut self, errno: impl Into<io::Error>) -> Self {
        self.0.errno = errno.into().raw_os_error();
        self
    }

    /// Returns the error number for a system call: that of the system, or the nearest one;
    /// `EUCLEAN` for damaged images, `EOPNOTSUPP` for unsupported ones, `EDQUOT` for limits.
    pub fn errno(&self) -> i32 {
        let of_system = self.io_source().and_then(io::Error::raw_os_error);
        let of_kind = match self.kind() {
            ErrorKind::Io => Errno::IO,
            ErrorKind::NotFound => Errno::NOENT,
            ErrorKind::AlreadyExists => Errno::EXIST,
            ErrorKind::Usage | ErrorKind::Failed => Errno::INVAL,
            ErrorKind::Corrupt => Errno::UCLEAN,
            ErrorKind::Unsupported => Errno::OPNOTSUPP,
            ErrorKind::Limit => Errno::DQUOT,
            ErrorKind::TooLarge => Errno::FBIG,
            ErrorKind::Cancelled => Errno::CANCELED,
        };
        of_system.or(self.0.errno).unwrap_or(of_kind.raw_os_error())
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the hints, in the order added.
    pub fn hints(&self) -> &[String] {
        &self.0.hints
    }

    /// Returns the operating system's error, if that is the cause.
    pub fn io_source(&self) -> Option<&io::Error> {
        self.0.source.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}

/// Converts for interfaces of `std::io`: an error of the operating system keeps its kind, others
/// get the nearest one. The error itself is available by [`io::Error::get_ref`].
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Io => error.io_source().map_or(io::ErrorKind::Other, io::Error::kind),
            ErrorKind::NotFound => io::ErrorKind::NotFound,
            ErrorKind::AlreadyExists => io::ErrorKind::AlreadyExists,
            ErrorKind::Usage => io::ErrorKind::InvalidInput,
            ErrorKind::Corrupt => io::ErrorKind::InvalidData,
            ErrorKind::Unsupported => io::ErrorKind::Unsupported,
            ErrorKind::Limit => io::ErrorKind::QuotaExceeded,
            ErrorKind::TooLarge => io::ErrorKind::FileTooLarge,
            // Not `Interrupted`: callers of `std::io` retry it forever.
            ErrorKind::Failed | ErrorKind::Cancelled => io::ErrorKind::Other,
        };
        let kind = if kind == io::ErrorKind::Interrupted { io::ErrorKind::Other } else { kind };
        io::Error::new(kind, error)
    }
}

/// Converts `io::Result`, naming the failed action.
pub trait ResultExt<T> {
    /// Names the failed action; the closure runs only on failure.
    fn or_io<D: fmt::Display>(self, action: impl FnOnce() -> D) -> Result<T>;
}

impl<T, E: Into<io::Error>> ResultExt<T> for std::result::Result<T, E> {
    fn or_io<D: fmt::Display>(self, action: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|source| Error::io(action(), source.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn becomes_an_error_of_the_standard_library_of_a_fitting_kind() {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let cases = [
            (Error::io("cannot read \"a\"", denied()), io::ErrorKind::PermissionDenied),
            (Error::io("cannot read", io::ErrorKind::NotFound.into()), io::ErrorKind::NotFound),
            (Error::io("cannot read", io::ErrorKind::Interrupted.into()), io::ErrorKind::Other),
            (Error::not_found("\"a\": no such path in the image"), io::ErrorKind::NotFound),
            (Error::usage("x"), io::ErrorKind::InvalidInput),
            (Error::corrupt("image", "x"), io::ErrorKind::InvalidData),
            (Error::unsupported("image", "x"), io::ErrorKind::Unsupported),
            (Error::limit("image", "x"), io::ErrorKind::QuotaExceeded),
            (Error::failed("x"), io::ErrorKind::Other),
            (Error::cancelled(), io::ErrorKind::Other),
        ];
        for (error, kind) in cases {
            let text = error.to_string();
            let io = io::Error::from(error.clone());
            assert_eq!((io.kind(), io.to_string()), (kind, text));
            let inner = io.get_ref().and_then(|inner| inner.downcast_ref::<Error>()).unwrap();
            assert_eq!(inner.kind(), error.kind());
        }
    }

    #[test]
    fn has_the_number_of_the_system_or_the_nearest() {
        let full = Error::io("cannot write", io::Error::from_raw_os_error(28));
        assert_eq!((full.errno(), Error::io("cannot read", io::Error::other("x")).errno()), (28, 5));
        assert_eq!((Error::not_found("x").errno(), Error::corrupt("image", "x").errno()), (2, 117));
        let failed = Error::failed("x");
        assert_eq!((failed.errno(), failed.with_errno(Errno::NOTDIR).errno()), (22, 20));
    }

    #[test]
    fn missing_paths_and_other_failures_share_an_exit_code() {
        assert_eq!(ErrorKind::NotFound.exit_code(), ErrorKind::Failed.exit_code());
    }
}

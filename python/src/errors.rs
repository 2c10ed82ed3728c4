//! Errors of the library as exceptions of Python.
//!
//! Everything that concerns files is an `OSError` with an error number, so that code for files
//! works with images. Wrong arguments are `ValueError`.

use packfs::ErrorKind;
use pyo3::create_exception;
use pyo3::exceptions::{
    PyFileNotFoundError, PyIsADirectoryError, PyKeyboardInterrupt, PyNotADirectoryError, PyOSError,
    PyValueError,
};
use pyo3::prelude::*;

create_exception!(packfs, Error, PyOSError, "Failure of packfs that no other exception fits; an OSError.");
create_exception!(
    packfs,
    CorruptImage,
    Error,
    "The image, archive, or manifest is damaged; errno is EUCLEAN."
);
create_exception!(
    packfs,
    UnsupportedImage,
    Error,
    "The format, or a feature of it, is not supported; errno is EOPNOTSUPP."
);
create_exception!(
    packfs,
    LimitExceeded,
    Error,
    "The input holds more than a limit allows, which can be raised; errno is EDQUOT."
);

/// Error numbers of Linux, from `asm-generic/errno.h`.
const ENOENT: i32 = 2;
const EIO: i32 = 5;
const ENOTDIR: i32 = 20;
const EISDIR: i32 = 21;
const EINVAL: i32 = 22;
const EFBIG: i32 = 27;
const ELOOP: i32 = 40;
const EOPNOTSUPP: i32 = 95;
const EUCLEAN: i32 = 117;
const EDQUOT: i32 = 122;

/// Converts an error of the library. Its hints become notes of the exception.
pub fn exception(error: &packfs::Error) -> PyErr {
    let text = error.to_string();
    let exception = match error.kind() {
        ErrorKind::Io => {
            let number = error.io_source().and_then(std::io::Error::raw_os_error).unwrap_or(EIO);
            PyOSError::new_err((number, text))
        }
        ErrorKind::NotFound => PyFileNotFoundError::new_err((ENOENT, text)),
        ErrorKind::Usage => PyValueError::new_err(text),
        ErrorKind::Corrupt => CorruptImage::new_err((EUCLEAN, text)),
        ErrorKind::Unsupported => UnsupportedImage::new_err((EOPNOTSUPP, text)),
        ErrorKind::Limit => LimitExceeded::new_err((EDQUOT, text)),
        ErrorKind::TooLarge => Error::new_err((EFBIG, text)),
        ErrorKind::Failed => Error::new_err((EINVAL, text)),
        ErrorKind::Cancelled => PyKeyboardInterrupt::new_err(text),
    };
    Python::attach(|py| {
        for hint in error.hints() {
            // A note that is lost changes nothing.
            let _ = exception.value(py).call_method1("add_note", (format!("hint: {hint}"),));
        }
    });
    exception
}

/// Converts an error of finding a path: of the library's failures there, too many links are one,
/// and all others are something on the way that is no directory.
pub fn of_lookup(error: &packfs::Error) -> PyErr {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Failed if text.contains("symbolic links") => PyOSError::new_err((ELOOP, text)),
        ErrorKind::Failed => PyNotADirectoryError::new_err((ENOTDIR, text)),
        _ => exception(error),
    }
}

/// The exception for something that is no regular file; `word` is its type.
pub fn not_a_file(path: &str, word: &str) -> PyErr {
    let text = format!("cannot read {path:?}: it is a {word}, not a file");
    if word == "directory" {
        PyIsADirectoryError::new_err((EISDIR, text))
    } else {
        PyOSError::new_err((EINVAL, text))
    }
}

/// The exception for something that is no directory.
pub fn not_a_directory(path: &str) -> PyErr {
    PyNotADirectoryError::new_err((ENOTDIR, format!("{path:?} is not a directory")))
}

/// The exception for something that is no symbolic link.
pub fn not_a_link(path: &str) -> PyErr {
    PyOSError::new_err((EINVAL, format!("{path:?} is not a symbolic link")))
}

//! Errors of the library as exceptions of Python.
//!
//! Everything that concerns files is an `OSError` with an error number, so that code for files
//! works with images. Wrong arguments are `ValueError`.

use packfs::ErrorKind;
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
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

/// Error number of failures without another one.
const EINVAL: i32 = 22;

/// Converts an error of the library. Its hints become notes of the exception.
pub fn exception(error: &packfs::Error) -> PyErr {
    let (errno, text) = (error.errno(), error.to_string());
    let exception = match error.kind() {
        // OSError makes an exception of the class for the number, such as NotADirectoryError.
        ErrorKind::Io | ErrorKind::NotFound | ErrorKind::AlreadyExists => PyOSError::new_err((errno, text)),
        ErrorKind::Failed if errno != EINVAL => PyOSError::new_err((errno, text)),
        ErrorKind::Usage => PyValueError::new_err(text),
        ErrorKind::Corrupt => CorruptImage::new_err((errno, text)),
        ErrorKind::Unsupported => UnsupportedImage::new_err((errno, text)),
        ErrorKind::Limit => LimitExceeded::new_err((errno, text)),
        ErrorKind::TooLarge | ErrorKind::Failed => Error::new_err((errno, text)),
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

//! Errors of the library as exceptions of Python.
//!
//! Everything that concerns files is an `OSError` with an error number, so that code for files
//! works with images. Wrong arguments are `ValueError`.

use packfs::{ErrorKind, shown_place, without_secrets};
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use std::path::Path;

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
    let (errno, text) = (error.errno(), in_python(&error.to_string()));
    let exception = match error.kind() {
        // OSError makes an exception of the class for the number, such as NotADirectoryError.
        ErrorKind::Io | ErrorKind::NotFound | ErrorKind::AlreadyExists => PyOSError::new_err((errno, text)),
        ErrorKind::Failed if errno != EINVAL => PyOSError::new_err((errno, text)),
        ErrorKind::Usage => PyValueError::new_err(text),
        ErrorKind::Corrupt => CorruptImage::new_err((errno, text)),
        ErrorKind::Unsupported => UnsupportedImage::new_err((errno, text)),
        ErrorKind::Limit => LimitExceeded::new_err((errno, text)),
        ErrorKind::Cancelled => PyKeyboardInterrupt::new_err(text),
        _ => Error::new_err((errno, text)),
    };
    Python::attach(|py| {
        for hint in error.hints() {
            if let Some(worded) = worded(py, hint) {
                // A note that is lost changes nothing.
                let _ = exception.value(py).call_method1("add_note", (format!("hint: {worded}"),));
            }
        }
    });
    exception
}

/// Returns a text in the words of the package; `None` if it only helps at the command line.
fn worded(py: Python<'_>, text: &str) -> Option<String> {
    if !text.contains(" -O ") && !text.contains("--") && !text.contains("packfs ") {
        return Some(text.to_owned());
    }
    let worded = py.import("packfs._hints").and_then(|hints| hints.call_method1("worded", (text,)));
    // As it is if there is no such module any more, at the end of the interpreter.
    worded.and_then(|worded| worded.extract()).unwrap_or_else(|_| Some(text.to_owned()))
}

/// Returns a message in the words of the package, or as it is if nothing of it would be left.
pub fn in_python(message: &str) -> String {
    Python::attach(|py| worded(py, message)).unwrap_or_else(|| message.to_owned())
}

/// Sets the attribute `filename` of an `OSError` that has none, for a place that has a path.
pub fn named(py: Python<'_>, error: PyErr, path: Option<&Path>) -> PyErr {
    if let Some(path) = path.filter(|path| !path.as_os_str().is_empty())
        && error.is_instance_of::<PyOSError>(py)
    {
        let value = error.value(py);
        if value.getattr("filename").is_ok_and(|name| name.is_none()) {
            // A name that is lost changes nothing. Tracebacks, and so logs, show it.
            let _ = value.setattr("filename", without_secrets(path).as_os_str());
        }
    }
    error
}

/// Does the same for the one of several paths that the message is about, as it shows them.
pub fn named_in_message<'a>(
    py: Python<'_>,
    error: PyErr,
    paths: impl IntoIterator<Item = &'a Path>,
) -> PyErr {
    let message = error.value(py).to_string();
    let about = paths.into_iter().find(|path| message.contains(&shown_place(path)));
    named(py, error, about)
}

/// Returns a report as a JSON object.
///
/// Errors: `Error` if it cannot be written, which is a fault of packfs.
pub fn json(report: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(report)
        .map_err(|error| Error::new_err((EINVAL, format!("internal: report: {error}"))))
}

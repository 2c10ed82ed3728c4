//! Results of calls: numbers, and the message of each thread's last failure.

use crate::words::{in_c, worded};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::num::NonZeroU8;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Wrong argument, from `asm-generic/errno-base.h`.
pub const EINVAL: c_int = 22;
/// A handle of another process, from `asm-generic/errno-base.h`.
pub const ECHILD: c_int = 10;
/// A name that is not there, from `asm-generic/errno.h`.
pub const ENODATA: c_int = 61;
/// Memory of the caller that is too small, from `asm-generic/errno-base.h`.
pub const ERANGE: c_int = 34;
/// A fault of packfs itself, from `asm-generic/errno.h`.
const ENOTRECOVERABLE: c_int = 131;

thread_local! {
    static LAST: RefCell<(c_int, CString)> = RefCell::default();
}

/// A failed call.
#[derive(Debug)]
pub struct Failure {
    number: c_int,
    message: String,
}

impl Failure {
    pub fn new(number: c_int, message: impl Into<String>) -> Self {
        Failure { number, message: message.into() }
    }

    /// A wrong argument.
    pub fn argument(message: impl Into<String>) -> Self {
        Failure::new(EINVAL, message)
    }

    /// Returns the negative number.
    pub fn result(&self) -> i64 {
        -i64::from(self.number)
    }

    /// Makes it the last failure of the thread.
    fn keep(self) -> i64 {
        let result = self.result();
        let message = c_text(&self.message);
        // A thread that ends has no message any more.
        let _ = LAST.try_with(|last| *last.borrow_mut() = (self.number, message));
        result
    }
}

/// Messages have the hints as further lines.
impl From<packfs::Error> for Failure {
    fn from(error: packfs::Error) -> Self {
        let hints =
            error.hints().iter().filter_map(|hint| worded(hint)).map(|hint| format!("\nhint: {hint}"));
        Failure::new(error.errno(), in_c(&error.to_string()) + &hints.collect::<String>())
    }
}

/// Returns a text with the NUL that ends it in C; one within it, which would end it, becomes `\0`.
pub fn c_text(text: &str) -> CString {
    let bytes = text.replace('\0', "\\0").into_bytes().into_iter();
    CString::from(bytes.filter_map(NonZeroU8::new).collect::<Vec<_>>())
}

pub type Result<T> = std::result::Result<T, Failure>;

/// Runs the body of a function; returns its value, or the negative number of its failure. A panic
/// is a failure, too.
pub fn answer(body: impl FnOnce() -> Result<i64>) -> i64 {
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        let message = "packfs failed on a fault of its own; standard error has the details";
        Err(Failure::new(ENOTRECOVERABLE, message))
    });
    outcome.unwrap_or_else(Failure::keep)
}

/// Runs the body of a function that returns an `int`.
pub fn status(body: impl FnOnce() -> Result<c_int>) -> c_int {
    let result = answer(|| body().map(i64::from));
    c_int::try_from(result).unwrap_or(-EINVAL)
}

/// Returns the number of the thread's last failure, and its message, which is valid until the next.
pub fn last() -> (c_int, *const c_char) {
    let last = LAST.try_with(|last| {
        let last = last.borrow();
        (last.0, last.1.as_ptr())
    });
    last.unwrap_or((0, CStr::as_ptr(c"")))
}

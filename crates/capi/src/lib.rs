//! C API of packfs: `libpackfs` and `packfs.h`, which reads and checks images.
//!
//! `api` holds the functions, in the order of the header, and with `pointers` all unsafe code;
//! the other modules are safe. No function lets a panic out: it becomes an error
//! (`error::answer`).
#![deny(unsafe_code)]

mod api;
mod error;
mod handles;
mod held;
mod named;
mod pointers;
mod session;
mod types;
mod words;

//! Checks of contents: decoding all data of an image, verifying a new image against its source,
//! comparing two trees.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! The structures of an image are checked by its format ([`packfs_format::Check::check`]); this
//! crate contains the checks that need no format: reading everything, and comparing.
#![forbid(unsafe_code)]

mod content;
mod diff;
mod written;

pub use content::{ContentReport, content};
pub use diff::{Change, DiffOptions, DiffReport, Difference, Side, diff};
pub use written::{Expected, written};

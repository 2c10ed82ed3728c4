//! Checks of contents: decoding all of an image, verifying a new one against its source, comparing
//! two trees.
//!
//! What the structures of an image are worth is the format's to say
//! ([`packfs_format::Volume::check`]); here is what no format needs to know: reading everything,
//! and comparing.
#![forbid(unsafe_code)]

mod content;
mod diff;
mod written;

pub use content::{ContentReport, content};
pub use diff::{Change, DiffOptions, DiffReport, Difference, Side, diff};
pub use written::{Expected, written};

//! Whether all contents of an image can be decoded, whether a new one holds what it was made of, and how two trees differ.
//!
//! What the structures of an image are worth is the format's to say ([`packfs_format::Volume::check`]); here is what no
//! format needs to know: reading everything, and comparing.
#![forbid(unsafe_code)]

mod content;
mod diff;
mod written;

pub use content::{ContentReport, content};
pub use diff::{Change, DiffOptions, DiffReport, Difference, Side, diff};
pub use written::{Expected, written};

//! Whether all contents of an image can be decoded, and how two trees differ.
//!
//! What the structures of an image are worth is the format's to say ([`packfs_core::Volume::check`]); here is what no
//! format needs to know: reading everything, and comparing.
#![forbid(unsafe_code)]

mod content;
mod diff;

pub use content::{ContentReport, content};
pub use diff::{Change, DiffOptions, DiffReport, Difference, Side, diff};

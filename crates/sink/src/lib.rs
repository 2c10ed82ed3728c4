//! Outputs of an opened image: a directory, a tar archive, a listing.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
#![forbid(unsafe_code)]

mod list;
mod ready;
mod rows;
mod select;
mod tar;
mod unpack;

pub use list::{ListOptions, list};
pub use rows::{Row, RowFormat, time_text};
pub use select::Pattern;
pub use tar::{TarOptions, TarReport, file_header, padding, write_tar, write_tar_file};
pub use unpack::{
    Existing, LossKind, NotRestored, NotRestoredExample, OwnerPolicy, UnpackOptions, UnpackReport, unpack,
};

//! Whatever eats an opened image: a directory, a tar archive, a listing.
#![forbid(unsafe_code)]

mod glob;
mod list;
mod rows;
mod select;

pub use list::{ListOptions, list};
pub use rows::{Row, RowFormat};
pub use select::Pattern;

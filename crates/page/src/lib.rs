//! Self-contained HTML pages: [`Page`] is their common frame, [`treemap`] the map of an image that
//! `packfs info --html` writes.
#![forbid(unsafe_code)]

mod page;
pub mod treemap;

pub use page::{Page, STYLE, data, escape};

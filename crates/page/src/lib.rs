//! Pages of HTML that stand alone: [`Page`] is the frame of all of them, [`treemap`] the map of an
//! image that `packfs info --html` writes.
#![forbid(unsafe_code)]

mod page;
pub mod treemap;

pub use page::{Page, STYLE, data, escape};

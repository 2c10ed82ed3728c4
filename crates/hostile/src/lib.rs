//! Inputs made to harm, and what must hold whatever they say.
//!
//! Owns the corpus (small images of every codec and layout, tars, manifests), the mutations done to
//! it, and one function for each property that fuzzing and the mutation run hold packfs to. It
//! judges from outside, through the library that people use; nothing here is linked into packfs.
//! Same seed, same bytes, same verdict.
#![forbid(unsafe_code)]

mod breach;
pub mod corpus;
mod extremes;
mod fields;
mod input;
mod judge;
mod mutation;
mod outcome;
pub mod properties;
mod sandpit;
pub mod session;
mod sums;
pub mod tally;

pub use breach::Breach;
pub use fields::{Field, fields};
pub use judge::{Judged, Verdict, judge};
pub use mutation::{Class, Mutated, mutate, mutate_plainly};
pub use sandpit::Sandpit;
pub use sums::repair;

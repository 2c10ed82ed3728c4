//! The machine that measures: what it is, how it forgets what it read, and how it gets trees of
//! Debian, and what it draws by lot.
//!
//! For the lab and for the project's own tools, which both measure on the same trees in the same
//! way. Nothing of the product is in here: the tools judge it, so they do not lean on it.
#![forbid(unsafe_code)]

pub mod cold;
pub mod debian;
mod facts;
mod random;

pub use facts::Facts;
pub use random::{Random, mix};

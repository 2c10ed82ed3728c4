//! Output of verbs: text, JSON, progress, errors, and files that get their names once they are
//! complete.

pub mod json;

pub use packfs_terminal::{Outcome, Output, exhausted, listed, progress, report, text};

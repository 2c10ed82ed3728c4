//! Output of verbs: text, JSON, progress, errors, and files that get their names once they are
//! complete.

mod file;
pub mod json;

pub use file::Output;
pub use packfs_terminal::{Outcome, exhausted, listed, progress, report, text};

//! Output of verbs: text, JSON, progress, errors, and files that get their name once they are
//! whole.

mod file;
pub mod json;

pub use file::Output;
pub use packfs_terminal::{Outcome, exhausted, listed, progress, report, text};

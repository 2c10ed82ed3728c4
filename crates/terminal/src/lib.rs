//! Input and output of the programs `packfs` and `packfs-lab`: common options, text and JSON,
//! progress and signals, errors, output files, shell completions, manual pages.
#![forbid(unsafe_code)]

pub mod completions;
pub mod exhausted;
pub mod json;
pub mod listed;
pub mod man;
mod output;
pub mod progress;
pub mod report;
pub mod text;
pub mod work;

pub use output::Output;
use std::process::ExitCode;

/// Exit code or error of a verb.
pub type Outcome = packfs::Result<ExitCode>;

//! `packfs lab report`: shows a session again.

use std::path::PathBuf;

use packfs_lab::report::{self, Format};
use packfs_lab::results::Results;

use crate::common::terminal;
use crate::watch::Watcher;
use packfs_terminal::Outcome;
use packfs_terminal::report::Out;

/// Show what a session measured, from its results.json
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// The results.json of a session
    #[arg(value_name = "RESULTS")]
    results: PathBuf,

    /// text, markdown, csv, json, or html
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

const EXAMPLES: &str = "\
Examples:
  packfs lab report results/results.json
  packfs lab report results/results.json --format markdown > report.md";

impl Opts {
    /// Shows it.
    pub fn run(self) -> Outcome {
        let results = Results::read(&self.results)?;
        let text = report::report(&results, self.format, terminal())?;
        let mut out = Out::stdout();
        out.line(text.trim_end())?;
        out.finish()?;
        Watcher::done()
    }
}

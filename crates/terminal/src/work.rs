//! Common options of long-running verbs.

use crate::progress::Bars;
use crate::{Outcome, report};
use packfs::ErrorKind;
use std::process::ExitCode;

/// Options for the number of threads and for progress.
#[derive(clap::Args)]
pub struct Work {
    /// Use N threads (default: one per processor)
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,

    /// Print no progress and no summary
    ///
    /// Results, warnings and errors are still printed, and so is the JSON of --json.
    #[arg(short, long)]
    pub quiet: bool,
}

impl Work {
    /// Returns the number of threads; 0 means one per CPU.
    pub fn jobs(&self) -> usize {
        self.jobs.map_or(0, usize::from)
    }

    /// Runs `work` with progress shown, unless `json` or `--quiet`, and clears the bars at its end;
    /// `work` does so itself before it prints an answer. Work stopped by a signal ends with that
    /// signal's exit code.
    pub fn shown(&self, json: bool, work: impl FnOnce(&Bars) -> Outcome) -> Outcome {
        let bars = Bars::new(!self.quiet && !json);
        let outcome = work(&bars);
        bars.finish();
        or_stopped(outcome, &bars)
    }
}

/// The same for verbs with `--json`.
#[derive(clap::Args)]
pub struct Answering {
    /// Print a JSON object
    #[arg(long)]
    pub json: bool,

    /// Options for the number of threads and for progress.
    #[command(flatten)]
    pub work: Work,
}

impl Answering {
    /// Runs `work` like [`Work::shown`].
    pub fn shown(&self, work: impl FnOnce(&Bars) -> Outcome) -> Outcome {
        self.work.shown(self.json, work)
    }
}

fn or_stopped(outcome: Outcome, bars: &Bars) -> Outcome {
    match (outcome, bars.stopped_exit_code()) {
        (Err(error), Some(code)) if error.kind() == ErrorKind::Cancelled => {
            bars.finish();
            report::stopped();
            Ok(ExitCode::from(code))
        }
        (outcome, _) => outcome,
    }
}

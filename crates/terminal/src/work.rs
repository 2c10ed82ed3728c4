//! Options of verbs that take their time.

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
    /// Number of threads; 0: one a processor.
    pub fn jobs(&self) -> usize {
        self.jobs.map_or(0, usize::from)
    }

    /// Does `work` with progress shown, unless its answer is JSON or nothing is to be said, and
    /// takes the bars away at its end; `work` does so itself before it prints an answer. What was
    /// stopped by a signal ends as that signal asks.
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
    /// Works like [`Work::shown`].
    pub fn shown(&self, work: impl FnOnce(&Bars) -> Outcome) -> Outcome {
        self.work.shown(self.json, work)
    }
}

/// Replaces an error that a signal caused by the exit code of that signal.
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

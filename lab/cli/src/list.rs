//! `packfs lab list`: what can be measured here.

use packfs_lab::process::Limit;
use packfs_lab::session::device_names;
use packfs_lab::subject::{Installed, Subjects};
use packfs_lab::workload::WORKLOADS;

use crate::common::packfs_program;
use crate::watch::Watcher;
use packfs_terminal::Outcome;
use packfs_terminal::report::Out;

/// List who can be measured here, what is done to them, and what is missing
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {}

const EXAMPLES: &str = "\
Examples:
  packfs lab list
  sudo packfs lab list                     with what only root can do";

impl Opts {
    /// Lists.
    pub fn run(self) -> Outcome {
        let subjects = Subjects::find(&packfs_program());
        let mut out = Out::stdout();
        for (title, names) in [
            ("makers", named(&subjects.makers)),
            ("readers", named(&subjects.readers)),
            ("unpackers", named(&subjects.unpackers)),
            ("writable file systems", named(&subjects.writable)),
            ("devices", device_names().map(str::to_owned).collect()),
        ] {
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            out.line(format_args!("{title}: {names}"))?;
        }
        out.line(format_args!("processors for programs (--cpus): {}", Limit::offered()))?;
        out.line("workloads:")?;
        for row in WORKLOADS.iter() {
            out.line(format_args!("  {:22}{} ({})", row.name, row.command, row.seeds.join(", ")))?;
        }
        if !subjects.missing.is_empty() {
            out.line("missing:")?;
        }
        for missing in &subjects.missing {
            let line = format!("  {:22}{}", missing.what, missing.why);
            out.line(packfs::printable(&line))?;
        }
        out.finish()?;
        Watcher::done()
    }
}

/// Returns names with versions.
fn named<K>(found: &[Installed<K>]) -> Vec<String> {
    found.iter().map(|one| format!("{} {}", one.name(), one.program().version)).collect()
}

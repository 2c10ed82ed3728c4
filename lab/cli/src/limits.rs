//! `packfs lab limits`: the least time that this machine needs for a job.

use std::path::PathBuf;

use packfs_lab::limits::measure;

use crate::common::packfs_program;
use crate::watch::Watcher;
use packfs_terminal::Outcome;
use packfs_terminal::report::{self, Out};

/// Measure the least time to pack, unpack, and serve a tree, and the time of programs
///
/// No program can do without some parts of a job: the system calls of a scan, reading, encoding or
/// decoding all data once, writing. Each is measured alone on one processor; their sum over all
/// processors is the limit. Programs run in turn, and the median counts. It needs memory for the
/// tree, and root for FUSE.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// The tree
    #[arg(value_name = "DIR")]
    tree: PathBuf,

    /// Runs of each program
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// Folder that images and trees are made in; in memory, no disk takes part
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    scratch: PathBuf,

    /// No progress lines
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  packfs lab limits /srv/tree
  packfs lab limits /srv/tree --runs 3 --scratch /var/tmp";

impl Opts {
    /// Measures, and prints a table.
    pub fn run(self) -> Outcome {
        let tell = |what: &str| {
            if !self.quiet {
                report::note(format_args!("measuring: {what}"));
            }
        };
        let limits = measure(&self.tree, &packfs_program(), &self.scratch, self.runs, &tell)?;
        let mut out = Out::stdout();
        out.line(format_args!("{:<32}{:>9}{:>9}{:>8}  {}", "job", "limit", "packfs", "ratio", "rival"))?;
        for limit in &limits {
            let ours = median(&limit.packfs);
            let rival = limit.rival.as_ref().map_or_else(
                || "not here".to_owned(),
                |(name, times)| format!("{} {name}", seconds(median(times))),
            );
            out.line(format_args!(
                "{:<32}{:>9}{:>9}{:>8.2}  {rival}",
                limit.job,
                seconds(limit.least),
                seconds(ours),
                ours / limit.least,
            ))?;
        }
        out.finish()?;
        Watcher::done()
    }
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.3} s")
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

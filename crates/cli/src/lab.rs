//! `packfs lab`: measures which filesystem image suits a tree on a device.

use crate::Outcome;
use crate::{lab_devices, lab_list, lab_pread, lab_report, lab_run, lab_seed, lab_tree};

/// Measure formats, codecs and block sizes on a tree and a device, packfs beside its rivals
///
/// Programs of others take part where they are on PATH or in target/peers; what is missing is said. Most of it needs root.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(subcommand)]
    work: Work,
}

const EXAMPLES: &str = "\
Examples:
  packfs lab run /srv/tree --quick
  packfs lab run /srv/tree --subject packfs:erofs:zstd:3:64K --subject mksquashfs:squashfs:xz --device sd
  packfs lab seed erofs-perf --quick --output results
  packfs lab report results/results.json --format markdown
  packfs lab devices --check --quick
  packfs lab list";

#[derive(clap::Subcommand)]
enum Work {
    Run(lab_run::Opts),
    Seed(lab_seed::Opts),
    Tree(lab_tree::Opts),
    Report(lab_report::Opts),
    List(lab_list::Opts),
    Devices(lab_devices::Opts),
    Pread(lab_pread::Opts),
}

impl Opts {
    /// Does it.
    pub fn run(self) -> Outcome {
        match self.work {
            Work::Run(opts) => opts.run(),
            Work::Seed(opts) => opts.run(),
            Work::Tree(opts) => opts.run(),
            Work::Report(opts) => opts.run(),
            Work::List(opts) => opts.run(),
            Work::Devices(opts) => opts.run(),
            Work::Pread(opts) => opts.run(),
        }
    }
}

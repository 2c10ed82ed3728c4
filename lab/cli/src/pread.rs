//! `packfs lab pread`: reads a file in pieces of 4 KiB, where fio is not here to do it.

use std::path::PathBuf;

use packfs_lab::workload::read_pieces;

use crate::watch::Watcher;
use packfs_terminal::Outcome;
use packfs_terminal::report::Out;

/// Read a file in pieces of 4 KiB, each once, and print seconds and bytes
#[derive(clap::Args)]
#[command(hide = true, after_help = EXAMPLES)]
pub struct Opts {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// sequential or random
    #[arg(long, value_name = "ORDER", value_parser = ["sequential", "random"])]
    order: String,

    /// Bytes to read
    #[arg(long, value_name = "BYTES")]
    bytes: u64,

    /// Seed of random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

const EXAMPLES: &str = "\
Examples:
  packfs lab pread /mnt/large.tar --order random --bytes 10485760";

impl Opts {
    /// Reads.
    pub fn run(self) -> Outcome {
        let (seconds, bytes) = read_pieces(&self.file, self.order == "random", self.bytes, self.seed)?;
        let mut out = Out::stdout();
        out.line(format_args!("{seconds:.9} {bytes}"))?;
        out.finish()?;
        Watcher::done()
    }
}

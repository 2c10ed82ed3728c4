//! `packfs man`: the manual pages, made from the same table as `--help`.

use crate::Outcome;
use packfs::ResultExt;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write the manual pages into a directory
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// The directory; made if it does not exist
    dir: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  packfs man ~/.local/share/man/man1     then: man packfs-pack";

impl Opts {
    /// Writes `packfs.1` and one page a verb, such as `packfs-pack.1`.
    pub fn run(self) -> Outcome {
        std::fs::create_dir_all(&self.dir).or_io(|| format!("cannot make {:?}", self.dir))?;
        clap_mangen::generate_to(crate::command().disable_help_subcommand(true), &self.dir)
            .or_io(|| format!("cannot write manual pages to {:?}", self.dir))?;
        Ok(ExitCode::SUCCESS)
    }
}

//! `packfs man`: the manual pages.

use super::lab;
use crate::out::Outcome;
use packfs::Error;
use packfs_terminal::man;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Write the manual pages into a directory
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Directory to write to; created if missing
    dir: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  packfs man ~/.local/share/man/man1    then: man packfs-pack";

impl Opts {
    /// Writes `packfs.1` and one page a verb, such as `packfs-pack.1`, and those of `packfs-lab` if
    /// it is installed.
    pub fn run(self, command: clap::Command) -> Outcome {
        man::write(command, &self.dir)?;
        match Command::new(lab::program()).arg("man").arg(&self.dir).status() {
            Ok(status) if !status.success() => {
                Err(Error::failed("cannot write the manual pages of packfs-lab: it failed"))
            }
            // Without the program its pages are of no use.
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io("cannot start packfs-lab", error))
            }
            _ => Ok(ExitCode::SUCCESS),
        }
    }
}

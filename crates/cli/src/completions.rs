//! `packfs completions`: what a shell needs to complete the command line.

use crate::Outcome;
use crate::report::cannot_write;
use packfs::ResultExt;
use std::io::Write;
use std::process::ExitCode;

/// Print shell completions
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// The shell
    shell: clap_complete::Shell,
}

const EXAMPLES: &str = "\
Examples:
  packfs completions bash > ~/.local/share/bash-completion/completions/packfs
  packfs completions fish > ~/.config/fish/completions/packfs.fish
  packfs completions zsh > ~/.zfunc/_packfs";

impl Opts {
    /// Prints.
    pub fn run(self) -> Outcome {
        // Generated in memory first: the generator panics when it cannot write.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::command(), "packfs", &mut script);
        std::io::stdout().write_all(&script).or_io(cannot_write)?;
        Ok(ExitCode::SUCCESS)
    }
}

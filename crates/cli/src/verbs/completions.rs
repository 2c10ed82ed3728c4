//! `packfs completions`: what a shell needs to complete the command line.

use crate::out::Outcome;
use packfs_terminal::completions;

/// Print shell completions
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Shell to complete for
    shell: clap_complete::Shell,
}

const EXAMPLES: &str = "\
Examples:
  packfs completions bash > ~/.local/share/bash-completion/completions/packfs
  packfs completions fish > ~/.config/fish/completions/packfs.fish
  packfs completions zsh > ~/.zfunc/_packfs";

impl Opts {
    /// Prints.
    pub fn run(self, command: clap::Command) -> Outcome {
        completions::print(self.shell, command, "packfs")
    }
}

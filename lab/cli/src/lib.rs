//! The program `packfs-lab`: measures which filesystem image suits a tree on a device, packfs
//! beside its rivals.
//!
//! One file a verb, as in the program `packfs`, which hands `packfs lab ...` and
//! `packfs advise ...` to it.
#![forbid(unsafe_code)]
#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "comments on options are help texts, whose brackets are no links"
)]

mod advise;
mod common;
mod devices;
mod limits;
mod list;
mod plan;
mod pread;
mod report;
mod run;
mod seed;
mod tree;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use packfs_terminal::report::{command_line, failure};
use packfs_terminal::{Outcome, completions, exhausted, man, progress};

/// Measure formats, codecs and block sizes on a tree and a device, packfs beside its rivals
///
/// Programs of others take part where they are on PATH or in target/peers; what is missing is said.
/// Most of it needs root.
#[derive(Parser)]
#[command(name = "packfs-lab", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  packfs lab run /srv/tree --quick
  packfs lab run /srv/tree --subject packfs:erofs:zstd:3:64K --subject mksquashfs:squashfs:xz --device sd
  packfs lab seed erofs-perf --quick --output results
  packfs lab plan run pack
  packfs lab report results/results.json --format markdown
  packfs lab devices --check --quick
  packfs lab list";

/// The table of contents: one row a verb, one file a row.
#[derive(Subcommand)]
enum Verb {
    Run(run::Opts),
    Seed(seed::Opts),
    Plan(plan::Opts),
    Tree(tree::Opts),
    Report(report::Opts),
    List(list::Opts),
    Devices(devices::Opts),
    Limits(limits::Opts),
    Advise(Box<advise::Opts>),
    Pread(pread::Opts),
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a directory
    Man {
        /// The directory; made if it does not exist
        dir: PathBuf,
    },
}

/// Runs the program.
pub fn main() -> ExitCode {
    exhausted::prepare();
    progress::undo_before_exit(packfs_lab::scratch::undo_all);
    match Cli::try_parse() {
        Ok(cli) => run(cli.verb).unwrap_or_else(|error| failure(&error)),
        Err(answer) => command_line(&answer, None),
    }
}

fn run(verb: Verb) -> Outcome {
    match verb {
        Verb::Run(opts) => opts.run(),
        Verb::Seed(opts) => opts.run(),
        Verb::Plan(opts) => opts.run(),
        Verb::Tree(opts) => opts.run(),
        Verb::Report(opts) => opts.run(),
        Verb::List(opts) => opts.run(),
        Verb::Devices(opts) => opts.run(),
        Verb::Limits(opts) => opts.run(),
        Verb::Advise(opts) => opts.run(),
        Verb::Pread(opts) => opts.run(),
        Verb::Completions { shell } => completions::print(shell, Cli::command(), "packfs-lab"),
        Verb::Man { dir } => man::write(Cli::command(), &dir).map(|()| ExitCode::SUCCESS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_has_no_contradictions() {
        Cli::command().debug_assert();
    }
}

//! The `packfs` program: one file per verb, each with its `Opts` and `run`, thin over the library `packfs`.
//!
//! Owns how things are typed and printed. Facts go to standard output, as text or (`--json`) as one JSON document;
//! progress, warnings and errors go to standard error. Exit codes: 0 done, 1 failed (or `diff` found differences),
//! 2 wrong usage, 3 corrupt input, 4 unsupported input, 128 + n stopped by signal n. It knows no format by name.
#![forbid(unsafe_code)]

mod cat;
mod check;
mod check_hints;
mod completions;
mod counts;
mod diff;
mod digest;
mod digest_list;
mod extents;
mod info;
mod interposer;
mod lab;
mod limits;
mod ls;
mod man;
mod mount;
mod mount_daemon;
mod mount_helper;
mod mount_options;
mod nested;
mod output;
mod pack;
mod pack_details;
mod pack_help;
mod pack_report;
mod protect;
mod repack;
mod repair;
mod sandbox;
mod scan;
mod shaping;
mod shared;
mod sign;
mod stat;
mod tar;
mod umount;
mod unpack;
mod verify;
mod verity;
mod verity_verify;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
// What both programs share, as if it stood here.
use packfs_terminal::{Outcome, exhausted, json, listed, progress, report, text};
use std::process::ExitCode;

/// Compressed read-only filesystem images: pack, read, check and compare them.
#[derive(Parser)]
#[command(name = "packfs", version, max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed (diff: the two differ), 2 wrong usage, 3 corrupt input,
4 unsupported input, 129, 130 and 143 stopped. NO_COLOR=1 turns colour off.";

/// The table of contents: one row a verb, one file a row.
#[derive(Subcommand)]
enum Verb {
    #[command(visible_aliases = ["create", "convert"])]
    Pack(Box<pack::Opts>),
    Repack(Box<repack::Opts>),
    #[command(visible_alias = "extract")]
    Unpack(unpack::Opts),
    Tar(tar::Opts),
    #[command(visible_alias = "list")]
    Ls(ls::Opts),
    Cat(cat::Opts),
    Stat(stat::Opts),
    Info(info::Opts),
    Check(check::Opts),
    Diff(diff::Opts),
    Digest(digest::Opts),
    Verity(Box<verity::Opts>),
    Sign(sign::Opts),
    Verify(verify::Opts),
    Protect(protect::Opts),
    Repair(repair::Opts),
    Mount(Box<mount::Opts>),
    Umount(umount::Opts),
    Advise(lab::AdviseOpts),
    Lab(lab::Opts),
    Completions(completions::Opts),
    Man(man::Opts),
}

/// A program that runs out of memory fails like any other.
#[global_allocator]
static ALLOCATOR: packfs::mount::ReportingAllocator = packfs::mount::ReportingAllocator;

fn main() -> ExitCode {
    exhausted::prepare();
    let args = mount_helper::arguments(std::env::args_os().collect());
    let matches = command().get_matches_from(args);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Some(warning) = interposer::not_honoured() {
        report::warning(&warning);
    }
    let outcome = match cli.verb {
        Verb::Pack(opts) => opts.run(),
        Verb::Repack(opts) => opts.run(),
        Verb::Unpack(opts) => opts.run(),
        Verb::Tar(opts) => opts.run(),
        Verb::Ls(opts) => opts.run(),
        Verb::Cat(opts) => opts.run(),
        Verb::Stat(opts) => opts.run(),
        Verb::Info(opts) => opts.run(),
        Verb::Check(opts) => opts.run(),
        Verb::Diff(opts) => opts.run(),
        Verb::Digest(opts) => opts.run(),
        Verb::Verity(opts) => opts.run(),
        Verb::Sign(opts) => opts.run(),
        Verb::Verify(opts) => opts.run(),
        Verb::Protect(opts) => opts.run(),
        Verb::Repair(opts) => opts.run(),
        Verb::Mount(opts) => opts.run(),
        Verb::Umount(opts) => opts.run(),
        Verb::Advise(opts) => opts.run(),
        Verb::Lab(opts) => opts.run(),
        Verb::Completions(opts) => opts.run(),
        Verb::Man(opts) => opts.run(),
    };
    outcome.unwrap_or_else(|error| report::failure(&error))
}

/// The whole command line, with the parts of the help that come from the library's tables.
fn command() -> clap::Command {
    let pack_help = |pack: clap::Command| pack.after_long_help(pack_help::after_long_help());
    Cli::command().mut_subcommand("pack", pack_help)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_has_no_contradictions() {
        super::command().debug_assert();
    }

    #[test]
    fn every_verb_has_examples() {
        for verb in super::command().get_subcommands() {
            let help = verb.clone().render_long_help().to_string();
            assert!(help.contains("Examples:\n"), "{}", verb.get_name());
        }
    }
}

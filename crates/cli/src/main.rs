//! The `packfs` program: one room per verb (`verbs/`), each with its `Opts` and `run`.
//!
//! Owns how things are typed and printed. Facts go to standard output, as text or (`--json`) as one
//! JSON document; progress, warnings and errors go to standard error. Exit codes: 0 done, 1 failed
//! (or `diff` found differences), 2 wrong usage, 3 corrupt input, 4 unsupported input, 5 a
//! source that changed since it was planned, 128 + n stopped by signal n. It knows no format by
//! name.
#![forbid(unsafe_code)]

mod args;
#[cfg(test)]
mod documents;
mod help;
mod interposer;
#[cfg(test)]
mod options_page;
mod out;
#[cfg(test)]
mod schema;
mod verbs;
mod version;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use out::{Outcome, exhausted, report};
use packfs::{Error, ErrorKind};
use std::process::ExitCode;
use verbs::*;

/// Compressed read-only filesystem images: pack, read, check and compare them.
#[derive(Parser)]
#[command(name = "packfs", version, max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed (diff: the two differ), 2 wrong usage,
3 corrupt input, 4 unsupported input, 5 pack-shard: the source changed since it
was planned, 129, 130 and 143 stopped by a signal.
NO_COLOR=1 turns colors off.";

/// Makes of a row a variant of the command line and its dispatch, and of a group a heading of the
/// help.
macro_rules! verbs {
    ($($heading:literal: {
        $($(#[$attribute:meta])* $name:ident($opts:ty) $(with $argument:expr)?,)*
    })*) => {
        #[derive(Subcommand)]
        enum Verb {
            $($($(#[$attribute])* $name($opts),)*)*
        }

        impl Verb {
            fn run(self) -> Outcome {
                match self {
                    $($(Verb::$name(opts) => opts.run($($argument)?),)*)*
                }
            }
        }

        /// Headings, and the numbers of verbs below them.
        const GROUPS: &[(&str, usize)] = &[$(($heading, [$(stringify!($name)),*].len()),)*];
    };
}

// The table of contents: one row a verb, one room a row.
verbs! {
    "Make images": {
        #[command(visible_aliases = ["create", "convert"])]
        Pack(Box<pack::Opts>),
        Repack(Box<repack::Opts>),
        Merge(Box<merge::Opts>),
        Plan(Box<plan::Opts>),
        PackShard(Box<pack_shard::Opts>),
    }
    "Read images": {
        #[command(visible_alias = "list")]
        Ls(ls::Opts),
        Cat(cat::Opts),
        Stat(stat::Opts),
        Info(info::Opts),
        #[command(visible_alias = "extract")]
        Unpack(unpack::Opts),
        Tar(tar::Opts),
    }
    "Mount and serve images": {
        Mount(Box<mount::Opts>),
        Umount(umount::Opts),
        Serve(serve::Opts),
        Cache(cache::Opts),
    }
    "Check, compare, and protect images": {
        Check(check::Opts),
        Diff(diff::Opts),
        Digest(digest::Opts),
        Verity(Box<verity::Opts>),
        Sign(sign::Opts),
        Verify(verify::Opts),
        Protect(protect::Opts),
        Repair(repair::Opts),
    }
    "Work with containers and other tools": {
        Oci(Box<oci::Opts>),
        Composefs(composefs::Opts),
        #[command(name = "as")]
        As(names::AsOpts),
        InstallNames(names::InstallNamesOpts),
    }
    "Measure and choose": {
        Advise(lab::AdviseOpts),
        Lab(lab::Opts),
    }
    "Set up": {
        Completions(completions::Opts) with command(),
        Man(man::Opts) with command(),
        BugReport(bug_report::Opts),
    }
}

/// A program that runs out of memory fails like any other.
#[global_allocator]
static ALLOCATOR: packfs::mount::ReportingAllocator = packfs::mount::ReportingAllocator;

fn main() -> ExitCode {
    exhausted::prepare();
    let args: Vec<_> = std::env::args_os().collect();
    let mounting = packfs_names::mount_tool(&args);
    let args = mount::arguments(args);
    if let Some(tool) = args.first().and_then(|path| packfs_names::tool(path)) {
        warn_of_interposer();
        return tool.run(args.get(1..).unwrap_or_default());
    }
    let meant = packfs_names::meant(&args);
    let matches = command().try_get_matches_from(args);
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(answer) => return report::command_line(&answer, meant.as_deref()),
    };
    warn_of_interposer();
    match (cli.verb.run(), mounting) {
        (Ok(code), Some(tool)) if code != ExitCode::SUCCESS => tool.mount_failure(None),
        (Err(error), Some(tool)) => tool.mount_failure(Some(&error)),
        (Err(error), None) if error.kind() == ErrorKind::Usage => {
            report::failure(&meant.into_iter().fold(error, Error::hint))
        }
        (Err(error), None) => report::failure(&error),
        (Ok(code), _) => code,
    }
}

fn warn_of_interposer() {
    if let Some(warning) = interposer::not_honoured() {
        report::warning(&warning);
    }
}

/// The whole command line, with the parts of the help that come from the library's tables.
fn command() -> clap::Command {
    let pack = |pack: clap::Command| {
        let pack = pack.after_long_help(pack::after_long_help());
        help::name_arguments(pack, &["<SOURCE>...", "<IMAGE>"])
    };
    let cli = Cli::command().long_version(version::long());
    help::arrange(help::grouped(cli, GROUPS).mut_subcommand("pack", pack))
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

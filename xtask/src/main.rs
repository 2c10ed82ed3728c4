//! `cargo xtask`: development tasks of the project, one file for each verb.
//!
//! The tool runs packfs but never imports it, so it builds in seconds even if the product crates do
//! not compile.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of developers")]

mod args;
mod capi;
mod ci;
mod corpus;
mod coverage;
mod debian;
mod dist;
mod failure;
mod fidelity;
mod fuzz;
mod kernels;
mod licenses;
mod matrix;
mod metadata;
mod mutate;
mod peers;
mod python;
mod shell;
mod suites;
mod table;
mod tidy;
mod workspace;

use std::process::ExitCode;

use failure::{Failure, Result};

/// A verb of the command line.
struct Verb {
    name: &'static str,
    about: &'static str,
    help: &'static str,
    run: fn(args::Args) -> Result<()>,
}

const VERBS: [Verb; 15] = [
    Verb { name: "ci", about: "run all checks and all tests", help: ci::HELP, run: ci::run },
    Verb {
        name: "tidy",
        about: "check imports, unsafe code, lengths, and paths in documents",
        help: tidy::HELP,
        run: tidy::run,
    },
    Verb {
        name: "check-licenses",
        about: "check that linked crates have permissive licenses",
        help: licenses::HELP,
        run: licenses::run,
    },
    Verb {
        name: "peers",
        about: "fetch Debian's newest SquashFS and EROFS tools",
        help: peers::HELP,
        run: peers::run,
    },
    Verb {
        name: "kernels",
        about: "fetch kernels of older Debian releases",
        help: kernels::HELP,
        run: kernels::run,
    },
    Verb { name: "python", about: "build and test the Python package", help: python::HELP, run: python::run },
    Verb {
        name: "capi",
        about: "build and install the C library, its header, and its pkg-config file",
        help: capi::HELP,
        run: capi::run,
    },
    Verb {
        name: "dist",
        about: "build static programs in archives, with checksums and a bill of materials",
        help: dist::HELP,
        run: dist::run,
    },
    Verb {
        name: "suites",
        about: "run the test suites of other tools with packfs under their names",
        help: suites::HELP,
        run: suites::run,
    },
    Verb {
        name: "corpus",
        about: "build the benchmark trees in target/corpora",
        help: corpus::HELP,
        run: corpus::run,
    },
    Verb {
        name: "matrix",
        about: "write docs/formats/interop-erofs.md",
        help: matrix::HELP,
        run: matrix::run,
    },
    Verb {
        name: "fidelity",
        about: "write docs/guide/fidelity.md",
        help: fidelity::HELP,
        run: fidelity::run,
    },
    Verb {
        name: "mutate",
        about: "test mutated images of each format",
        help: mutate::HELP,
        run: mutate::run,
    },
    Verb { name: "fuzz", about: "fuzz parsers, decoders, and requests", help: fuzz::HELP, run: fuzz::run },
    Verb {
        name: "coverage",
        about: "measure line coverage of the readers",
        help: coverage::HELP,
        run: coverage::run,
    },
];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let outcome = match words.next().as_deref() {
        None | Some("--help" | "-h" | "help") => {
            print!("{}", overview());
            Ok(())
        }
        Some(name) => match VERBS.iter().find(|verb| verb.name == name) {
            Some(verb) => run(verb, args::Args::new(words)),
            None => Err(Failure::usage(format!("no such command {name:?}\n\n{}", overview()))),
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}

fn run(verb: &Verb, mut args: args::Args) -> Result<()> {
    if args.switch("--help") || args.switch("-h") {
        println!("{}\n\n{}", verb.about, verb.help);
        return Ok(());
    }
    (verb.run)(args)
}

fn overview() -> String {
    let mut text = String::from("Usage: cargo xtask COMMAND [OPTIONS]\n\n");
    for verb in &VERBS {
        text += &format!("  {:16}{}\n", verb.name, verb.about);
    }
    text + "\n`cargo xtask COMMAND --help` describes the options.\n"
}

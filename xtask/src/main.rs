//! `cargo xtask`: what the project does to itself.
//!
//! One file per verb. Nothing here is linked into packfs, and packfs is only ever run, never
//! imported, so this builds in seconds whatever state the product crates are in.
#![forbid(unsafe_code)]

mod args;
mod ci;
mod corpus;
mod coverage;
mod debian;
mod failure;
mod fidelity;
mod fuzz;
mod kernels;
mod licences;
mod matrix;
mod metadata;
mod mutate;
mod peers;
mod shell;
mod table;
mod tidy;
mod workspace;

use std::process::ExitCode;

use failure::{Failure, Result};

/// One verb: its name, what it does in a line, its own help, and the function that does it.
struct Verb {
    name: &'static str,
    about: &'static str,
    help: &'static str,
    run: fn(args::Args) -> Result<()>,
}

const VERBS: [Verb; 11] = [
    Verb { name: "ci", about: "all checks, then all tests", help: ci::HELP, run: ci::run },
    Verb {
        name: "tidy",
        about: "imports, circles, unsafe code, names of formats, lengths, paths in documents",
        help: tidy::HELP,
        run: tidy::run,
    },
    Verb {
        name: "check-licences",
        about: "every linked crate is permissively licensed",
        help: licences::HELP,
        run: licences::run,
    },
    Verb {
        name: "peers",
        about: "fetch the newest SquashFS and EROFS tools of Debian into target/peers",
        help: peers::HELP,
        run: peers::run,
    },
    Verb {
        name: "kernels",
        about: "fetch kernels of older Debian releases into target/kernels",
        help: kernels::HELP,
        run: kernels::run,
    },
    Verb {
        name: "corpus",
        about: "build the benchmark trees in target/corpora",
        help: corpus::HELP,
        run: corpus::run,
    },
    Verb {
        name: "matrix",
        about: "which reader of EROFS agrees with which writer, as a table",
        help: matrix::HELP,
        run: matrix::run,
    },
    Verb {
        name: "fidelity",
        about: "what survives in which format on which way, written as docs/guide/fidelity.md",
        help: fidelity::HELP,
        run: fidelity::run,
    },
    Verb {
        name: "mutate",
        about: "try very many mutated images of each format, and count how that ends",
        help: mutate::HELP,
        run: mutate::run,
    },
    Verb {
        name: "fuzz",
        about: "fuzz what is promised of images, archives, blocks and requests, guided by coverage",
        help: fuzz::HELP,
        run: fuzz::run,
    },
    Verb {
        name: "coverage",
        about: "which lines of the readers the tests reach",
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
    text + "\n`cargo xtask COMMAND --help` tells the options.\n"
}

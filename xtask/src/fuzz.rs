//! `cargo xtask fuzz`: coverage-guided fuzzing of each property, with the stable compiler.
//!
//! The compiler's own sanitizer-coverage pass needs no nightly; what libFuzzer misses without one is the address sanitizer,
//! which finds little in crates that forbid unsafe code.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::args;
use crate::failure::{Failure, Result};
use crate::{metadata, mutate, shell, workspace};

pub const HELP: &str = "\
Usage: cargo xtask fuzz [PROPERTY...] [OPTIONS]

  PROPERTY            open walk read check extract repack fuse tar manifest decode [all]
  --seconds N         for each property [60]
  --jobs N            processes of each [1]

Needs a C++ compiler, for libFuzzer. Inputs that lead somewhere new are kept in fuzz/corpus, findings in fuzz/findings.";

/// All properties, in the order in which they are tried.
const PROPERTIES: [&str; 10] =
    ["open", "walk", "read", "check", "extract", "repack", "fuse", "tar", "manifest", "decode"];

/// Counters at every edge, compares told to libFuzzer; the pass is part of every stable LLVM.
const FLAGS: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
    "-Ccodegen-units=16",
];

pub fn run(mut args: args::Args) -> Result<()> {
    let seconds = args.number("--seconds", 60)?;
    let jobs = args.number("--jobs", 1)?;
    let mut chosen: Vec<&str> = PROPERTIES.into_iter().filter(|name| args.first_word(name)).collect();
    args.finish_empty()?;
    if chosen.is_empty() {
        chosen = PROPERTIES.to_vec();
    }

    let folder = workspace::root().join("fuzz");
    let program = build(&folder)?;
    let mut found = vec![];
    for property in chosen {
        let corpus = folder.join("corpus").join(property);
        shell::run_quietly(mutate::program("packfs-corpus").arg(property).arg(&corpus))?;
        let findings = folder.join("findings").join(property);
        workspace::make_dir(&findings)?;
        let start = Instant::now();
        let mut command = Command::new(&program);
        command.env("PACKFS_PROPERTY", property).current_dir(&folder);
        command.arg(format!("-max_total_time={seconds}")).args(["-timeout=10", "-rss_limit_mb=1024"]);
        command.args(["-max_len=300000", "-print_final_stats=1", "-dict=images.dict", "-reload=0"]);
        command.arg(format!("-artifact_prefix={}/", findings.display()));
        if jobs > 1 {
            command.arg(format!("-fork={jobs}"));
        }
        command.arg(&corpus);
        eprintln!("==> {property}");
        if let Err(failure) = shell::run(&mut command) {
            found.push(format!("{property}: {failure}; its input is in {}", findings.display()));
        }
        eprintln!("{property}: {:.0} s", start.elapsed().as_secs_f64());
    }
    if found.is_empty() { Ok(()) } else { Err(Failure::new(found.join("\n"))) }
}

/// Builds the one program that tries all properties.
fn build(folder: &Path) -> Result<std::path::PathBuf> {
    let target = workspace::target().join("fuzz");
    let mut command = metadata::cargo();
    command.args(["build", "--release", "--quiet", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    // A target of its own triple keeps the flags off build scripts.
    command.args(["--target", HOST, "--target-dir"]).arg(&target).current_dir(folder);
    shell::run(command.env("RUSTFLAGS", FLAGS.join(" ")))?;
    Ok(target.join(HOST).join("release/fuzz"))
}

/// What is built for: the machine that runs it.
const HOST: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };

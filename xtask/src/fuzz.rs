//! `cargo xtask fuzz`: coverage-guided fuzzing of each property, with the stable compiler.
//!
//! The sanitizer-coverage pass needs no nightly compiler. Only the address sanitizer does, which
//! finds little in crates that forbid unsafe code.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Result};
use crate::table::Table;
use crate::{metadata, mutate, shell, workspace};

/// Fuzz parsers, decoders, and requests
///
/// Needs a C++ compiler for libFuzzer. Inputs with new coverage are kept in fuzz/corpus, findings
/// in fuzz/findings. Prints a table at the end.
#[derive(clap::Args)]
pub struct Options {
    /// Properties; all if none is named
    #[arg(value_parser = PROPERTIES)]
    properties: Vec<String>,
    /// Seconds for each property, or for each of its turns with --minutes
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: usize,
    /// Minutes for all properties: they take turns, and findings do not end the run
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Maximum seconds for one input
    #[arg(long, value_name = "N", default_value_t = 10)]
    timeout: usize,
    /// Processes for each property
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
}

/// All properties, in the order of fuzzing.
const PROPERTIES: [&str; 17] = [
    "open",
    "walk",
    "read",
    "check",
    "extract",
    "repack",
    "merge",
    "fuse",
    "tar",
    "manifest",
    "decode",
    "lzma",
    "recovery",
    "verity",
    "signature",
    "fs-verity",
    "shards",
];

/// Counters at every edge, and comparisons reported to libFuzzer; every stable LLVM has the pass.
const FLAGS: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
    "-Ccodegen-units=16",
];

pub fn run(options: Options) -> Result<()> {
    let Options { properties, seconds, minutes, timeout, jobs } = options;
    let all_time = minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let is_chosen = |name: &&str| properties.is_empty() || properties.iter().any(|chosen| chosen == name);
    let chosen = PROPERTIES.into_iter().filter(is_chosen);

    let folder = workspace::root().join("fuzz");
    let fuzzing = Fuzzing { program: build(&folder)?, folder, seconds, timeout, jobs };
    let mut totals: Vec<(&str, Total)> = Vec::new();
    for property in chosen {
        fuzzing.prepare(property)?;
        totals.push((property, Total::default()));
    }
    let start = Instant::now();
    loop {
        for (property, total) in &mut totals {
            if all_time.is_some_and(|all| start.elapsed() >= all) {
                break;
            }
            total.add(fuzzing.turn(property)?);
        }
        if all_time.is_none_or(|all| start.elapsed() >= all) {
            break;
        }
    }
    print!("{}", table(&totals).markdown());
    let found = totals.iter().filter(|(_, total)| total.findings > 0);
    let found: Vec<String> = found
        .map(|(property, _)| {
            format!("{property}: see {}", fuzzing.folder.join("findings").join(property).display())
        })
        .collect();
    if found.is_empty() { Ok(()) } else { Err(Failure::new(found.join("\n"))) }
}

#[derive(Default)]
struct Total {
    executions: u64,
    time: Duration,
    edges: u64,
    kept: u64,
    findings: u64,
}

impl Total {
    fn add(&mut self, turn: Total) {
        self.executions += turn.executions;
        self.time += turn.time;
        self.edges = self.edges.max(turn.edges);
        self.kept = turn.kept.max(self.kept);
        self.findings += turn.findings;
    }

    fn hear(&mut self, line: &str) {
        let number = |key: &str| {
            let rest = line.split_once(key)?.1.trim_start();
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
        };
        if line.starts_with('#') {
            self.edges = number(" cov:").unwrap_or(self.edges);
            self.kept = number(" corp:").unwrap_or(self.kept);
        }
        self.executions = number("stat::number_of_executed_units:").unwrap_or(self.executions);
    }
}

fn table(totals: &[(&str, Total)]) -> Table {
    let mut table = Table::new(&["property", "executions", "seconds", "edges", "inputs kept", "findings"], 1);
    let mut row = |name: &str, total: &Total, of_one: [u64; 2]| {
        // Edges and inputs of different properties cannot be added.
        let [edges, kept] = of_one.map(|figure| if figure == 0 { String::new() } else { figure.to_string() });
        let [executions, seconds, findings] =
            [total.executions, total.time.as_secs(), total.findings].map(|figure| figure.to_string());
        table.row(vec![name.to_owned(), executions, seconds, edges, kept, findings]);
    };
    let mut all = Total::default();
    for (property, total) in totals {
        row(property, total, [total.edges, total.kept]);
        all.executions += total.executions;
        all.time += total.time;
        all.findings += total.findings;
    }
    row("all", &all, [0, 0]);
    table
}

struct Fuzzing {
    program: PathBuf,
    folder: PathBuf,
    seconds: usize,
    timeout: usize,
    jobs: usize,
}

impl Fuzzing {
    fn prepare(&self, property: &str) -> Result<()> {
        let corpus = self.folder.join("corpus").join(property);
        shell::run_quietly(mutate::program("packfs-corpus").arg(property).arg(&corpus))?;
        workspace::make_dir(&self.folder.join("findings").join(property))
    }

    /// Fuzzes one property for its time, or until the first finding.
    fn turn(&self, property: &str) -> Result<Total> {
        let mut command = Command::new(&self.program);
        command.env("PACKFS_PROPERTY", property).current_dir(&self.folder).stderr(Stdio::piped());
        command.arg(format!("-max_total_time={}", self.seconds)).arg(format!("-timeout={}", self.timeout));
        command.args(["-rss_limit_mb=1024", "-max_len=300000", "-print_final_stats=1"]);
        let dictionary = self.folder.join("corpus").join(format!("{property}.dict"));
        command.arg(format!("-dict={}", dictionary.display())).arg("-reload=0");
        let findings = self.folder.join("findings").join(property);
        command.arg(format!("-artifact_prefix={}/", findings.display()));
        if self.jobs > 1 {
            command.arg(format!("-fork={}", self.jobs));
        }
        command.arg(self.folder.join("corpus").join(property));
        eprintln!("==> {property}");
        let start = Instant::now();
        let mut turn = Total::default();
        let failed = |error: std::io::Error| Failure::new(format!("{property}: {error}"));
        let mut child = command.spawn().map_err(failed)?;
        if let Some(said) = child.stderr.take() {
            // Invalid UTF-8 is part of an input that libFuzzer shows.
            for line in BufReader::new(said).split(b'\n').map_while(std::result::Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                turn.hear(&line);
                eprintln!("{line}");
            }
        }
        let status = child.wait().map_err(failed)?;
        turn.time = start.elapsed();
        // libFuzzer exits like this after a signal, without a finding.
        let is_clean = status.success() || status.code() == Some(INTERRUPTED);
        turn.findings = u64::from(!is_clean);
        Ok(turn)
    }
}

/// Exit code of libFuzzer after SIGINT.
const INTERRUPTED: i32 = 72;

fn build(folder: &Path) -> Result<std::path::PathBuf> {
    let target = workspace::target().join("fuzz");
    let mut command = metadata::cargo();
    command.args(["build", "--release", "--quiet", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    // An explicit target triple keeps the flags away from build scripts.
    command.args(["--target", HOST, "--target-dir"]).arg(&target).current_dir(folder);
    shell::run(command.env("RUSTFLAGS", FLAGS.join(" ")))?;
    Ok(target.join(HOST).join("release/fuzz"))
}

/// Returns the target triple of this machine.
const HOST: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_output_of_libfuzzer() {
        let mut turn = Total::default();
        for line in [
            "INFO: Seed: 1",
            "#1024\tpulse  cov: 321 ft: 900 corp: 12/34Kb lim: 4096 exec/s: 500 rss: 60Mb",
            "#2048\tDONE   cov: 400 ft: 901 corp: 13/35Kb lim: 4096 exec/s: 512 rss: 60Mb",
            "stat::number_of_executed_units: 2048",
        ] {
            turn.hear(line);
        }
        assert_eq!((turn.executions, turn.edges, turn.kept), (2048, 400, 13));
        let mut total = Total::default();
        total.add(Total { findings: 1, ..turn });
        total.add(Total { executions: 2, edges: 9, ..Total::default() });
        assert_eq!((total.executions, total.edges, total.kept, total.findings), (2050, 400, 13, 1));
        assert!(table(&[("open", total)]).text().contains("2050"));
    }
}

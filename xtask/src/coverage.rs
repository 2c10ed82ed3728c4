//! `cargo xtask coverage`: line coverage of the readers.
//!
//! Uses the compiler's source-based coverage; `llvm-profdata` and `llvm-cov` are in the component
//! `llvm-tools` of the toolchain. Tests in source files are not counted.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::{metadata, shell, workspace};

/// Measure line coverage of the readers
///
/// Builds and runs the tests of all formats and of crates/hostile with counters, and prints line
/// coverage of the read side of each format (all but pack/ and code used only for packing). Needs
/// `rustup component add llvm-tools`.
#[derive(clap::Args)]
pub struct Options {
    /// Fail if coverage of a format is lower
    #[arg(long, value_name = "PERCENT", default_value_t = 90)]
    min: usize,
    /// Print the lines that no test reaches
    #[arg(long)]
    missed: bool,
}

/// Parts of paths of code that only packing or tests use.
const NOT_READ: [&str; 8] =
    ["/pack/", "/tests/", "/options", "/rules.rs", "/kernel.rs", "/codec_words.rs", "/tests.rs", "/wish"];

pub fn run(Options { min, missed }: Options) -> Result<()> {
    let tools = Tools::find()?;
    let folder = workspace::target().join("coverage");
    let profiles = folder.join("profiles");
    workspace::remove_dir(&profiles)?;
    workspace::make_dir(&profiles)?;
    let programs = programs(&folder)?;
    for program in &programs {
        let mut command = Command::new(program);
        command.current_dir(workspace::root()).arg("--quiet");
        command.env("LLVM_PROFILE_FILE", profiles.join("%p-%m.profraw"));
        shell::run_quietly(&mut command)?;
    }
    let merged = folder.join("all.profdata");
    let mut raw: Vec<PathBuf> = std::fs::read_dir(&profiles)
        .map_err(|error| Failure::io("read", &profiles, error))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    raw.sort();
    shell::run_quietly(
        Command::new(&tools.profdata).args(["merge", "-sparse", "-o"]).arg(&merged).args(&raw),
    )?;
    let lines = tools.export(&merged, &programs)?;
    report(&lines, min, missed)
}

struct Tools {
    profdata: PathBuf,
    cov: PathBuf,
}

impl Tools {
    fn find() -> Result<Self> {
        let root = shell::capture(Command::new("rustc").args(["--print", "sysroot"]))?;
        let host = shell::capture(Command::new("rustc").args(["--print", "host-tuple"]))?;
        let bin = Path::new(root.trim()).join("lib/rustlib").join(host.trim()).join("bin");
        let (profdata, cov) = (bin.join("llvm-profdata"), bin.join("llvm-cov"));
        if !cov.is_file() {
            return Err(Failure::new("cannot find llvm-cov\nhint: rustup component add llvm-tools"));
        }
        Ok(Self { profdata, cov })
    }

    /// Returns the counts of llvm-cov: one object for each file.
    fn export(&self, profile: &Path, programs: &[PathBuf]) -> Result<Vec<Value>> {
        let mut command = Command::new(&self.cov);
        command.args(["export", "--format=text", "--skip-functions", "--instr-profile"]).arg(profile);
        for program in programs {
            command.arg("--object").arg(program);
        }
        let text = shell::capture(&mut command)?;
        let mut json: Value =
            serde_json::from_str(&text).map_err(|error| Failure::new(format!("llvm-cov: {error}")))?;
        match json["data"][0]["files"].take() {
            Value::Array(files) => Ok(files),
            _ => Err(Failure::new("llvm-cov: unexpected JSON")),
        }
    }
}

/// Returns the folders of `crates/formats` with a format each.
fn formats() -> Result<Vec<String>> {
    let folder = workspace::root().join("crates/formats");
    let entries = std::fs::read_dir(&folder).map_err(|error| Failure::io("read", &folder, error))?;
    let formats = entries.flatten().filter(|entry| entry.path().join("Cargo.toml").is_file());
    let mut names: Vec<String> =
        formats.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

fn programs(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut command = metadata::cargo();
    command.current_dir(workspace::root()).args(["test", "--no-run", "--lib", "--target-dir"]);
    command.arg(folder.join("build")).args(["--message-format=json-render-diagnostics", "--quiet"]);
    for format in formats()? {
        command.args(["--package", &format!("packfs-format-{format}")]);
    }
    command.args(["--package", "packfs-hostile"]);
    // Procedural macros have counters, too; their profiles are discarded.
    command.env("RUSTFLAGS", "-Cinstrument-coverage").env("LLVM_PROFILE_FILE", "/dev/null");
    let text = shell::capture(&mut command)?;
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let tests = messages.filter(|message| message["profile"]["test"] == true);
    Ok(tests.filter_map(|message| Some(PathBuf::from(message["executable"].as_str()?))).collect())
}

/// Returns the counted lines of a file, and the reached ones, without the tests at its end.
fn counted(file: &Value) -> Option<(u64, Vec<u64>)> {
    let name = file["filename"].as_str()?;
    let source = std::fs::read_to_string(name).ok()?;
    let tests_at = source.lines().position(|line| line.trim() == "#[cfg(test)]").unwrap_or(usize::MAX) as u64;
    // A segment is a start and a count of runs. A line has the highest count of its segments.
    let mut lines: std::collections::BTreeMap<u64, u64> = std::collections::BTreeMap::new();
    let segments = file["segments"].as_array()?;
    for pair in segments.windows(2) {
        let (Some(from), Some(to)) = (pair[0][0].as_u64(), pair[1][0].as_u64()) else { continue };
        let counts = pair[0][3].as_bool().unwrap_or(false) && !pair[0][5].as_bool().unwrap_or(false);
        let ends_line = pair[1][1].as_u64().is_some_and(|column| column <= 1);
        let last = if ends_line && to > from { to - 1 } else { to };
        if counts {
            let count = pair[0][2].as_u64().unwrap_or(0);
            for line in from..=last {
                let most = lines.entry(line).or_insert(0);
                *most = (*most).max(count);
            }
        }
    }
    let lines = lines.into_iter().filter(|(line, _)| *line <= tests_at);
    let (mut total, mut missed) = (0, vec![]);
    for (line, count) in lines {
        total += 1;
        if count == 0 {
            missed.push(line);
        }
    }
    Some((total, missed))
}

fn report(files: &[Value], min: usize, tell_missed: bool) -> Result<()> {
    let mut faults = vec![];
    println!("| read side | lines | reached | share |\n|---|--:|--:|--:|");
    let mut places = vec![];
    for format in formats()? {
        let part = format!("crates/formats/{format}/src/");
        let (mut total, mut reached) = (0, 0);
        for file in files {
            let Some(name) = file["filename"].as_str() else { continue };
            if !name.contains(&part) || NOT_READ.iter().any(|other| name.contains(other)) {
                continue;
            }
            let Some((lines, missed)) = counted(file) else { continue };
            total += lines;
            reached += lines - missed.len() as u64;
            let share = 100 * (lines - missed.len() as u64) / lines.max(1);
            let name = name.rsplit("/crates/").next().unwrap_or(name);
            places.push(format!("{share:4} %  {name}: {}", ranges(&missed)));
        }
        let share = 100.0 * reached as f64 / (total as f64).max(1.0);
        println!("| {format} | {total} | {reached} | {share:.1} % |");
        if total == 0 || share < min as f64 {
            faults.push(format!("{format}: {share:.1} % of {total} lines, at least {min} % required"));
        }
    }
    if tell_missed {
        println!("\n{}", places.join("\n"));
    }
    if faults.is_empty() { Ok(()) } else { Err(Failure::new(faults.join("\n"))) }
}

fn ranges(lines: &[u64]) -> String {
    let mut told: Vec<(u64, u64)> = vec![];
    for &line in lines {
        match told.last_mut() {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => told.push((line, line)),
        }
    }
    let spelled =
        told.iter().map(|(from, to)| if from == to { from.to_string() } else { format!("{from}-{to}") });
    spelled.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_neighbours_as_ranges() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3 7 9-10");
        assert_eq!(ranges(&[]), "");
    }
}

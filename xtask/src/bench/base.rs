//! `cargo xtask bench base`: what an earlier image saves where one file in a hundred has changed.
//!
//! packfs against itself: a full pack of the changed tree, and one with the image of the tree as it was before as the base.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::measure::{self, Sample};
use super::outcome;
use super::scratch::Scratch;
use super::session;
use crate::args;
use crate::corpus::Corpus;
use crate::failure::{Failure, Result};
use crate::rivals::{self, Packfs};
use crate::shell;
use crate::table::Table;

pub const HELP: &str = "\
Usage: cargo xtask bench base [OPTIONS]

  --packfs PATH       measure this program instead of building one
  --scratch DIR       where trees and images are written [/dev/shm]
  --runs N            measured runs of each, the quickest counts [3]

Packs a Debian root of which one file in a hundred has changed, with and without an image of it as it was before.";

/// One file in so many is changed.
const CHANGED_SHARE: usize = 100;
/// The most that the base may take of a full pack's time, and the image of its size.
const WALL_MAX: f64 = 0.1;
const LEN_MAX: f64 = 1.01;

/// How images are made.
const WAYS: [(&str, &[&str]); 2] = [
    ("SquashFS zstd:15 128K", &["--format", "squashfs", "--codec", "zstd:15", "--block-size", "128K"]),
    ("EROFS zstd:15 64K", &["--format", "erofs", "--codec", "zstd:15", "--block-size", "64K"]),
];

pub fn run(mut args: args::Args) -> Result<()> {
    let program = args.option("--packfs")?.map(PathBuf::from);
    let (scratch, runs) = (args.option("--scratch")?, args.number("--runs", 3)?);
    args.finish_empty()?;
    let packfs = Packfs::named(program)?;
    session::ensure(vec![Corpus::Debian])?;
    let scratch = Scratch::new(scratch.as_deref().map(Path::new))?;
    let tree = scratch.path("changed");
    shell::run(Command::new("cp").arg("-a").arg(Corpus::Debian.path()).arg(&tree))?;
    change(&tree)?;

    let mut table = Table::new(&["image", "how", "wall, s", "CPU, s", "bytes"], 2);
    let mut missed = Vec::new();
    for (name, words) in WAYS {
        let old = scratch.path("old");
        measured(&packfs, &Corpus::Debian.path(), &old, words, 1)?;
        let full = measured(&packfs, &tree, &scratch.path("full"), words, runs)?;
        let old_name = old.display().to_string();
        let base = [words, &["--base", &old_name]].concat();
        let based = measured(&packfs, &tree, &scratch.path("based"), &base, runs)?;
        let times = [&base[..], &["--base-check", "times"]].concat();
        let times = measured(&packfs, &tree, &scratch.path("times"), &times, runs)?;
        for (how, (sample, len)) in [("full", &full), ("--base", &based), ("--base-check times", &times)] {
            let seconds = |time: std::time::Duration| format!("{:.2}", time.as_secs_f64());
            table.row(vec![
                name.into(),
                how.into(),
                seconds(sample.wall),
                seconds(sample.cpu()),
                len.to_string(),
            ]);
        }
        let wall = based.0.wall.as_secs_f64() / full.0.wall.as_secs_f64();
        let len = based.1 as f64 / full.1 as f64;
        if wall > WALL_MAX || len > LEN_MAX {
            missed.push(format!("{name}: {wall:.3} of the time, {len:.4} of the size"));
        }
    }
    println!("{}", table.text());
    outcome::verdict(format_args!("more than {WALL_MAX} or {LEN_MAX}"), &missed)
}

/// The quickest of several runs, and how long the image is.
fn measured(
    packfs: &Packfs,
    source: &Path,
    image: &Path,
    words: &[&str],
    runs: usize,
) -> Result<(Sample, u64)> {
    let places = [source.as_os_str().to_owned(), image.as_os_str().to_owned()];
    let words = words.iter().map(OsString::from).chain(["--quiet".into(), "--no-sync".into()]);
    let command = [packfs.start_packing(), places.to_vec(), words.collect()].concat();
    let mut best: Option<Sample> = None;
    for _ in 0..runs {
        session::remove(image)?;
        let sample = measure::run(&command, None)?;
        if best.is_none_or(|best| sample.wall < best.wall) {
            best = Some(sample);
        }
    }
    let len = image.metadata().map_err(|error| Failure::io("look at", image, error))?.len();
    eprintln!("{len:>10}  {}", rivals::spelled(&command));
    let sample = best.ok_or_else(|| Failure::new("nothing was run"))?;
    Ok((sample, len))
}

/// Changes a byte in the middle of one file in a hundred, and adds a line to it.
fn change(tree: &Path) -> Result<()> {
    let mut files = Vec::new();
    let mut open = vec![tree.to_owned()];
    while let Some(dir) = open.pop() {
        let entries = fs::read_dir(&dir).map_err(|error| Failure::io("list", &dir, error))?;
        for entry in entries {
            let path = entry.map_err(|error| Failure::io("list", &dir, error))?.path();
            let found = path.symlink_metadata().map_err(|error| Failure::io("look at", &path, error))?;
            if found.is_dir() {
                open.push(path);
            } else if found.is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
    for path in files.iter().step_by(CHANGED_SHARE) {
        let mut bytes = fs::read(path).map_err(|error| Failure::io("read", path, error))?;
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 0x55;
        }
        bytes.extend_from_slice(b"\nchanged\n");
        fs::write(path, bytes).map_err(|error| Failure::io("write", path, error))?;
    }
    Ok(())
}

//! `cargo xtask bench scale`: whether time grows with the number of files and no faster, and how memory does.
//!
//! packfs alone: a tree, the same kind of tree with ten times the files, and a source tree of Linux.
//!
//! Trees that are compared with each other lie in a tmpfs: a machine that keeps 100,000 inodes of a disk in memory from one run
//! to the next and not 1,000,000 would be measured, and not the program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::measure::{self, Sample};
use super::outcome;
use super::scratch::Scratch;
use super::session;
use super::summary::ratio;
use crate::args;
use crate::corpus::Corpus;
use crate::failure::{Failure, Result};
use crate::rivals::{self, Packfs};
use crate::shell;
use crate::table::Table;

pub const HELP: &str = "\
Usage: cargo xtask bench scale [OPTIONS]

  --packfs PATH       measure this program instead of building one
  --scratch DIR       where images are written, and trees copied to [/dev/shm]
  --on-disk           leave the trees of small files where they are made
  --runs N            measured runs of each, the quickest counts [1]

Packs 100,000 and 1,000,000 small files, and a source tree of Linux, as SquashFS and as EROFS. The trees of small
files are copied to the scratch folder before, which takes 6 GiB there.";

/// The most that ten times the entries may take of the time.
const WALL_MAX: f64 = 11.0;
/// The most memory, in bytes: so much, and so much an entry.
const MEMORY_MAX: (u64, u64) = (200 << 20, 300);

const CORPORA: [Corpus; 3] = [Corpus::Small100k, Corpus::Million, Corpus::Linux];
const FORMATS: [&str; 2] = ["squashfs", "erofs"];

pub fn run(mut args: args::Args) -> Result<()> {
    let program = args.option("--packfs")?.map(PathBuf::from);
    let on_disk = args.switch("--on-disk");
    let (scratch, runs) = (args.option("--scratch")?, args.number("--runs", 1)?);
    args.finish_empty()?;
    let packfs = Packfs::named(program)?;
    session::ensure(CORPORA.to_vec())?;
    let scratch = Scratch::new(scratch.as_deref().map(Path::new))?;
    let image = scratch.path("image");
    let place = |corpus: Corpus| match corpus {
        Corpus::Linux => Ok(corpus.path()),
        _ if on_disk => Ok(corpus.path()),
        _ => copied(corpus, &scratch),
    };
    let places = CORPORA.into_iter().map(place).collect::<Result<Vec<_>>>()?;

    let head =
        ["image", "tree", "entries", "wall, s", "CPU, s", "of the tree before", "peak, MiB", "allowed"];
    let mut table = Table::new(&head, 2);
    let mut missed = vec![];
    for format in FORMATS {
        let mut small = None;
        for (corpus, place) in CORPORA.iter().copied().zip(&places) {
            let entries = corpus.ensure()?.entries;
            let sample = quickest(&packfs, format, place, &image, runs)?;
            let allowed = MEMORY_MAX.0 + MEMORY_MAX.1 * entries;
            let name = format!("{format} {}", corpus.name());
            if sample.memory_peak > allowed {
                missed.push(format!("{name}: {} bytes > {allowed}", sample.memory_peak));
            }
            let grown = small.take().filter(|_| corpus == Corpus::Million);
            let grown = grown.map(|small: Sample| ratio(sample.wall, small.wall));
            if let Some(times) = grown.filter(|times| *times > WALL_MAX) {
                missed.push(format!("{name}: {times:.2} of the time > {WALL_MAX}"));
            }
            table.row(vec![
                format.into(),
                corpus.name().into(),
                entries.to_string(),
                format!("{:.2}", sample.wall.as_secs_f64()),
                format!("{:.2}", sample.cpu().as_secs_f64()),
                grown.map_or_else(|| "-".into(), |times| format!("{times:.2}")),
                (sample.memory_peak >> 20).to_string(),
                (allowed >> 20).to_string(),
            ]);
            small = Some(sample);
        }
    }
    println!("{}", table.text());
    outcome::verdict("missed", &missed)
}

/// The quickest of several runs, with the largest memory of all.
fn quickest(packfs: &Packfs, format: &str, tree: &Path, image: &Path, runs: usize) -> Result<Sample> {
    let words = ["--format", format, "--codec", "zstd:3", "--jobs", "2", "--quiet", "--no-sync"];
    let places = [tree.into(), image.into()];
    let command = [packfs.start_packing(), places.to_vec(), words.map(OsString::from).to_vec()].concat();
    let mut best: Option<Sample> = None;
    for _ in 0..runs {
        session::remove(image)?;
        session::warm(tree)?;
        let sample = measure::run(&command, None)?;
        let memory_peak = best.map_or(0, |best| best.memory_peak).max(sample.memory_peak);
        let best_so_far = best.filter(|best| best.wall <= sample.wall).unwrap_or(sample);
        best = Some(Sample { memory_peak, ..best_so_far });
    }
    eprintln!("{}", rivals::spelled(&command));
    best.ok_or_else(|| Failure::new("nothing was run"))
}

/// A copy of a tree in the scratch folder, made by another process: measuring needs this one small.
fn copied(corpus: Corpus, scratch: &Scratch) -> Result<PathBuf> {
    let copy = scratch.path(corpus.name());
    shell::run_quietly(Command::new("cp").arg("-a").arg(corpus.path()).arg(&copy)).map_err(|failure| {
        Failure::new(format!("{failure}\nhint: --on-disk measures the tree where it is"))
    })?;
    Ok(copy)
}

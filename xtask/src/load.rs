//! `cargo xtask load`: one reader of a tree, the same whatever shows the tree.
//!
//! Measures itself and prints what it did as one line of JSON. What is read, and in which order, depends on the seed and
//! on the names of another tree, so that learning the names does not warm up what is measured.

mod compare;
mod done;
mod files;
mod large;
mod names;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::args;
use crate::failure::{Failure, Result};

pub use done::Done;

pub const HELP: &str = "\
Usage: cargo xtask load cat|random|sequential|verify PATH [OPTIONS]

  cat          read every file of the tree PATH once, in random order
  random       read pages of 4 KiB of the file PATH in random order, none twice
  sequential   read the file PATH from its beginning, 1 MiB at a time
  verify       random reads, stats and lists of the tree PATH, each compared with the tree of --names-of

  --names-of TREE   a tree with the same names, to learn them from [PATH]
  --seed N          another order [7]
  --threads N       that many readers, each of a part of its own [1]
  --seconds N       random, sequential, verify: stop after that long [3]

Prints seconds, processor time of its own, operations and bytes.";

/// What is read, and how.
pub struct Load {
    pub path: PathBuf,
    pub names_of: PathBuf,
    pub seed: u64,
    pub threads: usize,
    pub time_max: Duration,
}

pub fn run(mut args: args::Args) -> Result<()> {
    let names_of = args.option("--names-of")?.map(PathBuf::from);
    let seed = args.number("--seed", 7)? as u64;
    let threads = args.number("--threads", 1)?;
    let time_max = Duration::from_secs(args.number("--seconds", 3)? as u64);
    let words = args.finish()?;
    let [work, path] = words.as_slice() else {
        return Err(Failure::usage(format!("what to do, and with which path\n\n{HELP}")));
    };
    let path = PathBuf::from(path);
    let load = Load { names_of: names_of.unwrap_or_else(|| path.clone()), path, seed, threads, time_max };
    let done = match work.as_str() {
        "cat" => files::read_all(&load)?,
        "random" => large::read_at_random(&load)?,
        "sequential" => large::read_in_order(&load)?,
        "verify" => compare::verify(&load)?,
        other => return Err(Failure::usage(format!("no load {other:?}\n\n{HELP}"))),
    };
    println!("{}", done.to_json());
    Ok(())
}

/// Runs `work` in each of `threads` threads with the thread's index, and adds up what they did.
fn in_threads(threads: usize, work: impl Fn(usize) -> Result<Done> + Sync) -> Result<Done> {
    let clock = done::Clock::start();
    let parts = std::thread::scope(|scope| {
        let work = &work;
        let readers: Vec<_> = (0..threads).map(|index| scope.spawn(move || work(index))).collect();
        let join = |reader: std::thread::ScopedJoinHandle<'_, Result<Done>>| {
            reader.join().unwrap_or_else(|_| Err(Failure::new("a reader panicked")))
        };
        readers.into_iter().map(join).collect::<Vec<_>>()
    });
    let mut total = Done::default();
    for part in parts {
        let part = part?;
        total.operations += part.operations;
        total.bytes += part.bytes;
    }
    clock.stop(&mut total);
    Ok(total)
}

fn open(path: &Path) -> Result<std::fs::File> {
    std::fs::File::open(path).map_err(|error| Failure::io("open", path, error))
}

/// How many names a tree has, its top included.
pub fn count_names(tree: &Path) -> Result<u64> {
    Ok(names::of(tree)?.len() as u64)
}

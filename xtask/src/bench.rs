//! `cargo xtask bench`: rivals and packfs in turn, as whole processes, in one session.
//!
//! Every figure printed here was measured here; what is to be reached stands in one table, `bench/target.rs`.

pub mod base;
mod case;
mod content;
pub mod goals;
mod judge;
pub mod kernel;
pub mod legacy;
mod machine;
mod measure;
mod outcome;
pub mod read;
mod report;
pub mod scale;
mod scratch;
mod session;
pub mod sizes;
mod summary;
mod target;

use std::path::{Path, PathBuf};

use crate::args;
use crate::failure::{Failure, Result};
use crate::rivals::Packfs;

pub const HELP: &str = "\
Usage: cargo xtask bench [pack|unpack|tar|all] [OPTIONS]
       cargo xtask bench read [WORK...] [OPTIONS]     unpack, tar and mounts: see `bench read --help`
       cargo xtask bench base [OPTIONS]               an earlier image as the base: see `bench base --help`
       cargo xtask bench kernel [OPTIONS]             cold kernel mounts of EROFS: see `bench kernel --help`
       cargo xtask bench goals [OPTIONS]              what --optimize makes: see `bench goals --help`
       cargo xtask bench scale [OPTIONS]              a million files: see `bench scale --help`
       cargo xtask bench legacy [OPTIONS]             old formats: see `bench legacy --help`
       cargo xtask bench sizes [OPTIONS]              the founding size tables: see `bench sizes --help`

  --runs N            measured runs of each, after one that warms up [5]
  --formats A,B       only these: squashfs erofs
  --codecs A,B        only these: gzip lzo lz4 lz4hc xz zstd deflate lzma
  --corpus A,B        only these: debian small100k same60k
  --block-size SIZE   this block size instead of each case's own: 4K to 1M
  --jobs N            threads of each program [2]
  --packfs PATH       measure this program instead of building one
  --rivals-only       leave packfs out
  --scratch DIR       where images and trees are written; best a tmpfs [/dev/shm]
  --json FILE         write machine, versions, commands and every sample
  --markdown FILE     write a page for docs/benchmarks.md

Needs `cargo xtask peers`; builds what it lacks of `cargo xtask corpus`.";

/// What was asked for.
struct Options {
    cases: Vec<case::Case>,
    runs: usize,
    jobs: usize,
    scratch: Option<PathBuf>,
    json: Option<PathBuf>,
    markdown: Option<PathBuf>,
}

pub fn run(mut args: args::Args) -> Result<()> {
    if args.first_word("read") {
        return read::run(args);
    }
    if args.first_word("base") {
        return base::run(args);
    }
    if args.first_word("kernel") {
        return kernel::run(args);
    }
    if args.first_word("goals") {
        return goals::run(args);
    }
    if args.first_word("legacy") {
        return legacy::run(args);
    }
    if args.first_word("scale") {
        return scale::run(args);
    }
    if args.first_word("sizes") {
        return sizes::run(args);
    }
    let rivals_only = args.switch("--rivals-only");
    let program = args.option("--packfs")?.map(PathBuf::from);
    let options = options(args)?;
    let packfs = (!rivals_only).then(|| Packfs::named(program)).transpose()?;

    let session = session::run(&options, packfs.as_ref())?;
    println!("\n{}", report::text(&session));
    if let Some(path) = &options.json {
        write(path, &format!("{:#}\n", report::json(&session)))?;
    }
    if let Some(path) = &options.markdown {
        write(path, &report::markdown(&session))?;
    }
    outcome::verdict("not measured", &session.failures)
}

fn options(mut args: args::Args) -> Result<Options> {
    let filter = case::Filter {
        formats: args.list("--formats")?,
        codecs: args.list("--codecs")?,
        corpora: args.list("--corpus")?,
        block_len: args.option("--block-size")?.map(|text| case::parse_block_len(&text)).transpose()?,
    };
    let (runs, jobs) = (args.number("--runs", 5)?, args.number("--jobs", 2)?);
    let [scratch, json, markdown] = ["--scratch", "--json", "--markdown"].map(|name| args.option(name));
    let words = args.finish()?;
    let cases = case::select(&words, &filter)?;
    let [scratch, json, markdown] = [scratch?, json?, markdown?].map(|path| path.map(PathBuf::from));
    Ok(Options { cases, runs, jobs, scratch, json, markdown })
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|error| Failure::io("write", path, error))
}

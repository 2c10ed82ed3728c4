//! `cargo xtask bench read`: everything that reads an image, against the readers there are.
//!
//! Unpacking and tars are cases of the common benchmark. Mounts are measured here: by FUSE, against the FUSE program of
//! the format and against the kernel's own mount of the same image.

mod case;
pub mod cold;
mod image;
mod judge;
mod memory_limit;
mod readers;
mod report;
mod session;
mod summary;
mod target;
mod workload;

use std::path::{Path, PathBuf};

use serde_json::json;

use super::scratch::{self, Scratch};
use super::{Options, write};
use crate::args;
use crate::corpus::Corpus;
use crate::failure::{Failure, Result};
use crate::mounts;
use crate::rivals::Packfs;
use crate::shell;

pub use case::MountCase;
pub use image::Images;

pub const HELP: &str = "\
Usage: cargo xtask bench read [WORK...] [OPTIONS]

  WORK is unpack, tar, mount, or one of
  mount-tar mount-cat mount-readers mount-find-cold mount-find-warm mount-random4k mount-sequential mount-memory [all]

  --runs N            measured runs of each, after one that warms up [5]
  --formats A,B       only these: squashfs erofs
  --codecs A,B        only these: zstd gzip lz4 xz, lz4hc zstd deflate lzma
                      [unpack and tar: all; mounts: zstd of SquashFS, lz4hc and zstd of EROFS]
  --jobs N            threads of each program that unpacks [2]
  --packfs PATH       measure this program instead of building one
  --rivals-only       leave packfs out
  --scratch DIR       where images lie and trees are written; best a tmpfs [/dev/shm]
  --json FILE         write machine, versions, commands and every sample
  --markdown FILE     write a page for docs/benchmarks.md

Mounting needs root. All images are made by mksquashfs and mkfs.erofs; those that are mounted are kept in target/images.";

/// What was asked for.
struct Asked {
    selection: case::Selection,
    runs: usize,
    jobs: usize,
    scratch: Option<PathBuf>,
    json: Option<PathBuf>,
    markdown: Option<PathBuf>,
}

pub fn run(mut args: args::Args) -> Result<()> {
    let rivals_only = args.switch("--rivals-only");
    let program = args.option("--packfs")?.map(PathBuf::from);
    let asked = asked(args)?;
    let packfs = (!rivals_only).then(|| Packfs::named(program)).transpose()?;
    if !asked.selection.mount.is_empty() && !shell::is_root() {
        return Err(Failure::new(
            "the kernel mounts for root only\nhint: name unpack and tar to measure those alone",
        ));
    }

    let extracted = extract(&asked, packfs.as_ref())?;
    let mounted = mount(&asked, packfs.as_ref())?;
    let mut failures = mounted.failures.clone();
    let (mut text, mut page, mut value) = (String::new(), String::new(), json!({}));
    if let Some(session) = &extracted {
        failures.extend(session.failures.clone());
        text += &super::report::text(session);
        page += &super::report::markdown(session);
        value["extract"] = super::report::json(session);
    }
    if !asked.selection.mount.is_empty() {
        text += &format!("\n{}\n", report::text(&mounted));
        text += &report::conditions(&mounted).join("\n");
        page += &format!("\n{}", report::markdown(&mounted));
        value["mount"] = report::json(&mounted);
    }
    println!("\n{text}");
    write_if(asked.json.as_deref(), &format!("{value:#}\n"))?;
    write_if(asked.markdown.as_deref(), &page)?;
    super::outcome::verdict("not measured", &failures)
}

fn asked(mut args: args::Args) -> Result<Asked> {
    let (formats, codecs) = (args.list("--formats")?, args.list("--codecs")?);
    let (runs, jobs) = (args.number("--runs", 5)?, args.number("--jobs", 2)?);
    let [scratch, json, markdown] = ["--scratch", "--json", "--markdown"].map(|name| args.option(name));
    let selection = case::select(&args.finish()?, &formats, &codecs)?;
    let [scratch, json, markdown] = [scratch?, json?, markdown?].map(|path| path.map(PathBuf::from));
    Ok(Asked { selection, runs, jobs, scratch, json, markdown })
}

/// None if nothing is unpacked.
fn extract(asked: &Asked, packfs: Option<&Packfs>) -> Result<Option<super::session::Session>> {
    let cases = asked.selection.extract.clone();
    if cases.is_empty() {
        return Ok(None);
    }
    let (scratch, json, markdown) = (asked.scratch.clone(), None, None);
    let options = Options { cases, runs: asked.runs, jobs: asked.jobs, scratch, json, markdown };
    super::session::run(&options, packfs).map(Some)
}

fn mount(asked: &Asked, packfs: Option<&Packfs>) -> Result<session::Session> {
    let cases = &asked.selection.mount;
    if cases.is_empty() {
        return Ok(session::Session::default());
    }
    let scratch = scratch(asked.scratch.as_deref())?;
    let used = |corpus: &Corpus| cases.iter().any(|case| case.workload.corpus() == *corpus);
    let corpora = super::session::ensure(Corpus::ALL.into_iter().filter(used).collect())?;
    let bench = session::Bench { scratch: &scratch, packfs, runs: asked.runs, jobs: asked.jobs, corpora };
    bench.run(cases)
}

/// The Debian root as each image that is usually mounted, or as each of the codecs named.
pub fn images_of_trees(formats: &[String], codecs: &[String]) -> Result<Vec<MountCase>> {
    case::select(&[workload::Workload::Tar.name().to_owned()], formats, codecs)
        .map(|selection| selection.mount)
}

/// A folder for images and mounts, which is cleared of both whatever ends this process but `kill -9`.
pub fn scratch(parent: Option<&Path>) -> Result<Scratch> {
    let parent = parent.unwrap_or(Path::new("/dev/shm"));
    // Mount points are looked up by their true name.
    let parent = parent.canonicalize().map_err(|error| Failure::io("find", parent, error))?;
    mounts::unmount_left_over(&parent, scratch::PREFIX);
    let scratch = Scratch::new(Some(&parent))?;
    mounts::remove_on_signals(&scratch.dir);
    mounts::clean_up_on_signals()?;
    Ok(scratch)
}

fn write_if(path: Option<&Path>, text: &str) -> Result<()> {
    path.map_or(Ok(()), |path| write(path, text))
}

//! `packfs cache`: the disk cache of images at URLs.

use crate::args::store;
use crate::out::report::Out;
use crate::out::{Outcome, json, text};
use packfs::remote::{Store, Stored};
use packfs::{Error, Result, printable, without_secrets};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

/// List, remove, or verify cached parts of images at URLs
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the versions of images in the cache
    #[command(visible_alias = "list")]
    Ls {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove images from the cache
    ///
    /// A process that has an image open reads on.
    Rm {
        /// URLs as packfs cache ls prints them
        #[arg(value_name = "URL", required_unless_present = "all")]
        urls: Vec<PathBuf>,

        /// Remove all images
        #[arg(long, conflicts_with = "urls")]
        all: bool,
    },
    /// Compare cached data with its checksums
    ///
    /// Damaged data is fetched again when it is read. The exit code is 1 if there is any.
    Verify {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

const EXAMPLES: &str = "\
Examples:
  packfs cache ls
  packfs cache verify
  packfs cache rm https://example.org/root.sqfs
  packfs cache rm --all";

impl Opts {
    /// Lists, removes, or verifies.
    pub fn run(self) -> Outcome {
        let store = store()?;
        match self.action {
            Action::Ls { json } => list(&store, json),
            Action::Rm { urls, all } => remove(&store, &urls, all),
            Action::Verify { json } => verify(&store, json),
        }
    }
}

fn list(store: &Store, as_json: bool) -> Outcome {
    let found = store.list()?;
    if as_json {
        let mut array = json::Array::document();
        for stored in &found {
            array.push(&Document::new(stored, None))?;
        }
        array.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = Out::stdout();
    for stored in &found {
        let (held, len) = (text::size(stored.held), text::size(stored.len));
        out.line(format_args!("{held:>10} of {len:>10}  {}", url(stored)))?;
    }
    if found.is_empty() {
        out.line("nothing is cached")?;
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn url(stored: &Stored) -> String {
    stored.url.as_deref().map_or("(damaged)".into(), |url| printable(url).to_string())
}

fn remove(store: &Store, urls: &[PathBuf], all: bool) -> Outcome {
    let found = store.list()?;
    if all {
        found.iter().try_for_each(|stored| store.remove(stored))?;
        return Ok(ExitCode::SUCCESS);
    }
    for url in urls {
        let shown = without_secrets(url);
        let is_it = |stored: &&Stored| stored.url.as_deref() == shown.to_str();
        let ours: Vec<&Stored> = found.iter().filter(is_it).collect();
        if ours.is_empty() {
            return Err(not_cached(&shown.to_string_lossy()));
        }
        ours.into_iter().try_for_each(|stored| store.remove(stored))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn not_cached(url: &str) -> Error {
    Error::failed(format!("cannot remove {}: it is not in the cache", printable(url)))
        .hint("packfs cache ls lists what is there")
}

fn verify(store: &Store, as_json: bool) -> Outcome {
    let checked: Vec<_> = store.list()?.iter().map(|stored| store.verify(stored)).collect::<Result<_>>()?;
    let bad = checked.iter().any(|verified| verified.bad > 0);
    if as_json {
        let mut array = json::Array::document();
        for verified in &checked {
            array.push(&Document::new(&verified.stored, Some((verified.good, verified.bad))))?;
        }
        array.finish()?;
    } else {
        let mut out = Out::stdout();
        for verified in &checked {
            let state = if verified.bad > 0 { "damaged" } else { "sound" };
            let (good, bad) = (verified.good, verified.bad);
            out.line(format_args!("{state}: {good} blocks match, {bad} do not  {}", url(&verified.stored)))?;
        }
        out.finish()?;
    }
    Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Entry of `cache ls --json` and `cache verify --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    /// URL without user, password, and values of its query; null if the file is damaged.
    url: Option<&'a str>,
    /// Length of the image in bytes.
    size: u64,
    /// Bytes of it on disk.
    cached: u64,
    /// Time of the last use, in seconds since 1970.
    used: u64,
    /// With `verify`: blocks of 64 KiB that match their checksums.
    #[serde(skip_serializing_if = "Option::is_none")]
    good_blocks: Option<u64>,
    /// With `verify`: blocks that do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    bad_blocks: Option<u64>,
}

impl<'a> Document<'a> {
    fn new(stored: &'a Stored, blocks: Option<(u64, u64)>) -> Self {
        let used = stored.used.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Document {
            url: stored.url.as_deref(),
            size: stored.len,
            cached: stored.held,
            used,
            good_blocks: blocks.map(|(good, _)| good),
            bad_blocks: blocks.map(|(_, bad)| bad),
        }
    }
}

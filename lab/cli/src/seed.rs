//! `packfs lab seed`: measures again what a document measured.

use std::path::PathBuf;

use packfs::{Error, Result};
use packfs_lab::results::Settings;
use packfs_lab::scratch::Scratch;
use packfs_lab::seed::{Document, DocumentRequest, SeedTrees, prepare};
use packfs_lab::session::Watch;
use packfs_lab::subject::Subjects;

use crate::common::{Common, packfs_program, with_hints};
use crate::watch::Watcher;
use packfs_terminal::Outcome;
use packfs_terminal::report::Out;
use packfs_terminal::text;

/// Measure again what a document measured, beside its own figures
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// erofs-perf, squashfs21, gentle, tools-ng, or daily; without one all are listed
    #[arg(value_name = "DOCUMENT", value_parser = document)]
    document: Option<&'static Document>,

    /// Minutes, not hours: fewer cells, one run of each, parts of the trees
    #[arg(long)]
    quick: bool,

    /// The tree in the place of the document's: DIR for all of them, or NAME=DIR for one; again for
    /// more [default: made once, in ~/.cache/packfs/trees]
    #[arg(long, value_name = "[NAME=]DIR")]
    tree: Vec<String>,

    /// Bytes of a tree to measure on, whole folders drawn by lot: 1G; more than --quick takes, and
    /// less than all
    #[arg(long, value_name = "BYTES", value_parser = part)]
    part: Option<u64>,

    /// File systems that are written on LUKS, too
    #[arg(long)]
    luks: bool,

    #[command(flatten)]
    common: Common,
}

const EXAMPLES: &str = "\
Examples:
  packfs lab seed                                   the documents, their trees and devices
  packfs lab seed erofs-perf --quick --tree debian=/srv/debian --output results
  packfs lab seed squashfs21 --quick --cpus 0.25       as slow as a processor of its time
  packfs lab seed tools-ng --part 1G --runs 1          every cell, on a third of the tree
  packfs lab seed daily --tree desktop=/srv/desktop --tree linux=/usr/src/linux --device nvme --runs 3
An interrupted session goes on when the same command is given again.";

fn document(name: &str) -> Result<&'static Document, String> {
    with_hints(Document::named(name))
}

/// Part of a tree of which files can still be drawn.
fn part(typed: &str) -> Result<u64, String> {
    let bytes = text::parse_size(typed)?;
    if bytes < 1 << 20 { Err("1M is the least that can be measured on".into()) } else { Ok(bytes) }
}

impl Opts {
    /// Measures.
    pub fn run(self) -> Outcome {
        let Some(document) = self.document else { return list() };
        self.common.check()?;
        let given = SeedTrees::parse(document, &self.tree)?;
        let watcher = self.common.watcher();
        let outcome = self.measure(document, &given, &watcher);
        watcher.or_stopped(outcome)
    }

    fn measure(&self, document: &Document, given: &SeedTrees, watcher: &Watcher) -> Outcome {
        // Before trees are made, which may take long.
        let limit = self.common.limit()?;
        let parent = self.common.scratch.clone().unwrap_or_else(|| PathBuf::from("/var/tmp"));
        let scratch = Scratch::new(&parent)?;
        let mut request = DocumentRequest {
            part: self.part,
            devices: self.common.device.clone(),
            settings: Settings { quick: self.quick, ..self.common.settings(limit.as_ref()) },
            luks: self.luks,
            ..DocumentRequest::default()
        };
        let note = |line: &str| watcher.note(line);
        request.roles = prepare(document, given, &request, &kept()?, &scratch, &note)?;
        let subjects = Subjects::find(&packfs_program());
        let plan = document.plan(&request);
        self.common.carry_out(&plan, subjects, limit, watcher, |results| {
            results.tables = document.tables(&request, results);
        })
    }
}

/// Returns the folder of trees that were made.
fn kept() -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = cache.filter(|path| path.is_absolute()).or_else(home);
    let missing = || Error::failed("neither XDG_CACHE_HOME nor HOME says where trees are kept");
    cache.map(|cache| cache.join("packfs/trees")).ok_or_else(|| missing().hint("--tree NAME=DIR names one"))
}

fn list() -> Outcome {
    let mut out = Out::stdout();
    for row in Document::all()? {
        let trees: Vec<_> = row.trees.iter().map(|kind| &*kind.row().name).collect();
        out.line(format_args!("{}: {}", row.name, row.source))?;
        out.line(format_args!("    on {}", row.setup))?;
        out.line(format_args!("    here on {}; trees {}", row.devices.join(", "), trees.join(", ")))?;
    }
    out.finish()?;
    Watcher::done()
}

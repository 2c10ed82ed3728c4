//! `packfs pack-shard`: packs one shard of a plan into a store.

mod lines;

use crate::args::{Running, Texts};
use crate::out::report::{self, Out};
use crate::out::{Outcome, json, text};
use lines::JsonLines;
use owo_colors::OwoColorize;
use packfs::shards::{
    ListedChange, PackedShard, Plan, ShardOptions, ShardOutcome, Sidecar, open_store, pack_shard,
};
use packfs::{Error, PackOptions, Progress, Result};
use packfs_terminal::work::Answering;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit code for a source that changed since it was planned.
const CHANGED: u8 = 5;

/// Changes that an error names.
const CHANGES_MAX: usize = 10;

/// Pack one shard of a plan into a store
///
/// Packs the entries of the shard's list to STORE/DIGEST.shard, where DIGEST depends on the list,
/// the options, and the version of packfs; then writes the sidecar STORE/DIGEST.json, which commits
/// the shard. A shard that STORE has already is not packed again. Several workers may pack one
/// shard at the same time.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Folder of the plan
    #[arg(value_name = "PLAN")]
    plan: PathBuf,

    /// Number of the shard, from 0
    #[arg(value_name = "N", value_parser = parse_index)]
    index: usize,

    /// Write to this directory, or to s3://BUCKET/PREFIX
    ///
    /// A directory is created if it is missing; a bucket is not. Shards for a bucket are packed in
    /// TMPDIR before.
    #[arg(long, value_name = "STORE")]
    to: PathBuf,

    /// Read the source from DIR instead of the planned path
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,

    /// Read all bytes of a shard that STORE has already
    ///
    /// Without it, its length and its first and last 64 KiB are compared with the sidecar. A
    /// damaged shard is packed again.
    #[arg(long)]
    reverify: bool,

    #[command(flatten)]
    running: Texts<Running>,

    /// Show progress as bar (default) or as json lines
    ///
    /// json prints a line on standard error when a stage begins, and each second.
    #[arg(long, value_name = "STYLE", default_value = "bar")]
    progress: Style,

    #[command(flatten)]
    answering: Answering,
}

/// Values of `--progress`.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Style {
    Bar,
    Json,
}

fn parse_index(typed: &str) -> Result<usize, String> {
    typed.parse().map_err(|_| "the number of a shard is expected, from 0".into())
}

const EXAMPLES: &str = "\
Examples:
  packfs pack-shard plan 7 --to /shared/store
  packfs pack-shard plan 7 --to s3://bucket/data
  packfs pack-shard plan $SLURM_ARRAY_TASK_ID --to /shared/store --progress json
  seq 0 63 | xargs -P 4 -I N packfs pack-shard plan N --to store -q -j 1

Exit code 5 if entries of the list changed since they were planned: their type,
size, time, mode or owner. --json lists all of them.";

impl Opts {
    /// Packs.
    pub fn run(self) -> Outcome {
        let plain = self.answering.json || self.progress == Style::Json;
        self.answering.work.shown(plain, |bars| {
            let plan = Plan::read(&self.plan)?;
            plan.shard(self.index)?;
            let store = open_store(&self.to, true)?;
            let lines = JsonLines::new(self.index, bars);
            let progress: &dyn Progress = if self.progress == Style::Json { &lines } else { bars };
            let options = ShardOptions {
                source: self.source.clone(),
                reverify: self.reverify,
                packing: PackOptions {
                    jobs: self.answering.work.jobs(),
                    ..PackOptions::of_texts(self.running.iter())?
                },
            };
            let outcome = pack_shard(&plan, self.index, &*store, &options, progress)?;
            bars.finish();
            match outcome {
                ShardOutcome::Done(packed) => self.tell(&packed).map(|()| ExitCode::SUCCESS),
                ShardOutcome::Changed(changes) => self.tell_changes(&plan, &changes),
            }
        })
    }

    fn tell(&self, packed: &PackedShard) -> Result<()> {
        let sidecar = &packed.sidecar;
        let state = if packed.was_present { "present" } else { "packed" };
        if self.answering.json {
            let (name, sidecar) = (Some(&*packed.name), Some(sidecar));
            return json::print(&Document { shard: self.index, state, name, sidecar, changes: Vec::new() });
        }
        if self.answering.work.quiet {
            return Ok(());
        }
        let mut out = Out::stdout();
        let (files, size) = (text::counted(sidecar.files, "file"), text::size(sidecar.size));
        let state = state.green();
        out.line(format_args!("{}: shard {}: {files}, {size}", state.bold(), self.index))?;
        if sidecar.unreadable > 0 {
            let paths = text::counted(sidecar.unreadable, "path");
            out.line(format_args!("  {paths} could not be read"))?;
        }
        out.finish()
    }

    fn tell_changes(&self, plan: &Plan, changes: &[ListedChange]) -> Outcome {
        let (source, plan) = (plan.source.display(), plan.folder.display());
        let (index, count) = (self.index, changes.len() as u64);
        let named = changes.iter().take(CHANGES_MAX);
        let named: Vec<String> =
            named.map(|change| format!("{:?} ({})", change.path, change.kind.word())).collect();
        let more = match changes.len().saturating_sub(CHANGES_MAX) {
            0 => String::new(),
            more => format!(", and {} more", text::count(more as u64)),
        };
        let entries = format!("{} of its entries", text::count(count));
        let what = format!(
            "cannot pack shard {index}: {entries} changed since planning: {}{more}",
            named.join(", ")
        );
        let error = Error::failed(what).hint(format!(
            "packfs plan {source} --like {plan} --out NEW plans again, and keeps unchanged shards"
        ));
        report::failure(&error);
        if self.answering.json {
            let changes = changes.iter().map(Change::from).collect();
            json::print(&Document { shard: index, state: "changed", name: None, sidecar: None, changes })?;
        }
        Ok(ExitCode::from(CHANGED))
    }
}

/// Document of `pack-shard --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    /// Number of the shard.
    shard: usize,
    /// `packed`, `present` if the store had it already, or `changed` (exit code 5).
    state: &'static str,
    /// Name of the shard in the store, without an extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// Sidecar of the shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    sidecar: Option<&'a Sidecar>,
    /// Entries that changed since planning.
    changes: Vec<Change<'a>>,
}

/// Entry that changed since planning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Change<'a> {
    #[serde(flatten)]
    path: &'a packfs::ImagePath,
    /// `missing`, `type`, `size`, `time`, or `owner` (with permissions).
    change: &'static str,
}

impl<'a> From<&'a ListedChange> for Change<'a> {
    fn from(change: &'a ListedChange) -> Self {
        Change { path: &change.path, change: change.kind.word() }
    }
}

//! `packfs verify PLAN`: verifies packed shards, and the image that was merged of them.

use crate::out::report::Out;
use crate::out::{Outcome, json, text};
use owo_colors::OwoColorize;
use packfs::shards::{
    Plan, ShardState, VerifiedImage, VerifiedShard, open_store, verify_merged, verify_shard,
};
use packfs::{ErrorKind, Progress, Result, printable};
use packfs_terminal::work::Answering;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

/// Request of the command line.
pub(super) struct Request<'a> {
    pub plan: &'a Path,
    pub store: &'a Path,
    /// The only shard to verify.
    pub shard: Option<usize>,
    /// Merged image.
    pub image: Option<&'a Path>,
    pub answering: &'a Answering,
}

impl Request<'_> {
    /// Verifies.
    pub(super) fn run(&self) -> Outcome {
        self.answering.shown(|bars| {
            let (shards, image) = self.verify(bars)?;
            bars.finish();
            let has = |state| shards.iter().any(|shard: &VerifiedShard| shard.state == state);
            let is_damaged =
                has(ShardState::Damaged) || image.as_ref().is_some_and(|image| !image.faults.is_empty());
            self.tell(&shards, image.as_ref())?;
            Ok(match (is_damaged, has(ShardState::Missing)) {
                (true, _) => ExitCode::from(ErrorKind::Corrupt.exit_code()),
                (false, true) => ExitCode::FAILURE,
                (false, false) => ExitCode::SUCCESS,
            })
        })
    }

    fn verify(&self, bars: &dyn Progress) -> Result<(Vec<VerifiedShard>, Option<VerifiedImage>)> {
        let plan = Plan::read(self.plan)?;
        let store = open_store(self.store, false)?;
        let indexes = match self.shard {
            Some(index) => index..index + 1,
            None => 0..plan.shards.len(),
        };
        let jobs = self.answering.work.jobs();
        let shards = indexes.map(|index| verify_shard(&plan, index, &*store, jobs, bars));
        let shards = shards.collect::<Result<Vec<_>>>()?;
        let image = self.image.map(|image| verify_merged(&plan, image, jobs, bars)).transpose()?;
        Ok((shards, image))
    }

    fn tell(&self, shards: &[VerifiedShard], image: Option<&VerifiedImage>) -> Result<()> {
        if self.answering.json {
            let shards = shards.iter().map(Shard::from).collect();
            let merged = image.map(|image| Merged { entries: image.entries, faults: &image.faults });
            return json::print(&Document { plan: json::Bytes::from(self.plan), shards, merged });
        }
        let mut out = Out::stdout();
        for shard in shards.iter().filter(|shard| shard.state != ShardState::Sound) {
            let word = shard.state.word();
            let faults = if shard.faults.is_empty() {
                String::new()
            } else {
                format!(": {}", shard.faults.join("; "))
            };
            out.line(format_args!("{}: shard {}{}", word.red(), shard.index, printable(&faults)))?;
        }
        for fault in image.iter().flat_map(|image| &image.faults) {
            out.line(format_args!("{}: image: {}", "damaged".red(), printable(fault)))?;
        }
        if !self.answering.work.quiet {
            let sound = shards.iter().filter(|shard| shard.state == ShardState::Sound).count() as u64;
            let (sound, count) = (text::count(sound), text::counted(shards.len() as u64, "shard"));
            out.line(format_args!("{}: {sound} of {count} sound", "verified".green().bold()))?;
            if let Some(image) = image {
                out.line(format_args!("  image: {} entries compared", text::count(image.entries)))?;
            }
        }
        out.finish()
    }
}

/// Document of `verify PLAN --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    #[serde(flatten)]
    plan: json::Bytes<'a, json::Plan>,
    /// Shards that were verified.
    shards: Vec<Shard<'a>>,
    /// Merged image.
    #[serde(skip_serializing_if = "Option::is_none")]
    merged: Option<Merged<'a>>,
}

/// Shard that was verified.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Shard<'a> {
    /// Number of the shard.
    shard: usize,
    /// `sound`, `missing`, or `damaged`.
    state: &'static str,
    /// Faults, at most 20.
    faults: &'a [String],
}

impl<'a> From<&'a VerifiedShard> for Shard<'a> {
    fn from(shard: &'a VerifiedShard) -> Self {
        Shard { shard: shard.index, state: shard.state.word(), faults: &shard.faults }
    }
}

/// Merged image that was verified.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Merged<'a> {
    /// Entries of the plan that were compared with the image.
    entries: u64,
    /// Faults, at most 20.
    faults: &'a [String],
}

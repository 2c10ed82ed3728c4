//! Packs one shard of a plan into a store.

use super::{Stored, difference, recipe, shard_object, sidecar_object, stored};
use crate::output_place::stage;
use crate::{Pack, PackOptions};
use packfs_core::{
    Error, ErrorKind, FileImage, MemoryImage, Progress, Result, Silent, Store, WithoutWarnings,
};
use packfs_pack::PackReport;
use packfs_shards::{Plan, PlannedShard, Sidecar, digest_of, ends_of, read_list};
use packfs_source::{Listed, ListedChange, Selection, Shape, load_listed};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Times that a worker looks at a sidecar that others change.
const TRIES: usize = 4;

/// Options of [`pack_shard`], none of which changes the shard.
#[derive(Clone, Debug, Default)]
pub struct ShardOptions {
    /// Place of the source on this machine, if it is not that of the plan.
    pub source: Option<PathBuf>,
    /// Set to read all of a shard that the store has already.
    pub reverify: bool,
    /// Threads, memory, verification, and syncing; all else is as planned.
    pub packing: PackOptions,
}

/// Shard that a store has.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PackedShard {
    /// Its name, without an extension.
    pub name: String,
    /// Its sidecar.
    pub sidecar: Sidecar,
    /// True if the store had it before.
    pub was_present: bool,
}

/// Result of [`pack_shard`].
#[derive(Clone, Debug)]
pub enum ShardOutcome {
    /// The store has the shard.
    Done(PackedShard),
    /// The source changed since it was planned: entries of the list that differ.
    Changed(Vec<ListedChange>),
}

/// Packs a shard of a plan into a store, unless the store has it.
///
/// The shard is created first, and its sidecar, which commits it, last. Neither is ever replaced,
/// but for a damaged one. Workers that pack the same shard at once all succeed.
///
/// Errors: `Usage` for a shard that the plan has not, `Corrupt` for a damaged list, and as
/// [`Pack::run`].
pub fn pack_shard(
    plan: &Plan,
    index: usize,
    store: &dyn Store,
    options: &ShardOptions,
    progress: &dyn Progress,
) -> Result<ShardOutcome> {
    let shard = plan.shard(index)?;
    // Plans of others may have options that write files, such as devices for data.
    let mut planned = recipe::options(&plan.recipe)?;
    recipe::check(&planned)?;
    let name = plan.name_of(shard);
    match stored(plan, shard, store, options.reverify, progress)? {
        Stored::Committed(sidecar) => {
            return Ok(ShardOutcome::Done(PackedShard { name, sidecar, was_present: true }));
        }
        Stored::Damaged(why) => {
            progress.warn(&format!("shard {index} in {} is packed again: {why}", store.name()));
            store.remove(&sidecar_object(&name))?;
            store.remove(&shard_object(&name))?;
        }
        Stored::Missing => {}
    }
    let source = options.source.as_deref().unwrap_or(&plan.source);
    if !planned.shape.additions.is_empty() {
        let elsewhere = Selection::new(plan.elsewhere(index)?);
        planned.shape.additions = planned.shape.additions.of_part(elsewhere);
    }
    let job = Job { plan, index, shard, source, shape: &planned.shape };
    let loaded = match job.load(progress)? {
        Listed::Loaded(mut loaded) => {
            // Planning warned of globs without effect; in the list of one shard they may have none.
            loaded.notes.unused_globs.clear();
            Arc::new(*loaded)
        }
        Listed::Changed(changes) => return Ok(ShardOutcome::Changed(changes)),
    };
    let staged = stage(store)?;
    let image = staged.path().join("shard");
    let pack_options = PackOptions {
        jobs: options.packing.jobs,
        memory: options.packing.memory,
        verify: options.packing.verify,
        sync: options.packing.sync,
        ..planned.clone()
    };
    let packed = Pack::of_loaded(loaded, &image).options(pack_options).run_with(progress);
    let report = match packed {
        Ok(report) => report,
        Err(error) if matches!(error.kind(), ErrorKind::Failed | ErrorKind::Io) => {
            // A file that changes while it is packed has changed since it was planned.
            return match job.load(&WithoutWarnings(progress)) {
                Ok(Listed::Changed(changes)) => Ok(ShardOutcome::Changed(changes)),
                _ => Err(error),
            };
        }
        Err(error) => return Err(error),
    };
    let sidecar = publish(&job, &image, store, &report, progress)?;
    Ok(ShardOutcome::Done(PackedShard { name, sidecar, was_present: false }))
}

/// A shard that is to be packed.
struct Job<'a> {
    plan: &'a Plan,
    index: usize,
    shard: &'a PlannedShard,
    source: &'a Path,
    shape: &'a Shape,
}

impl Job<'_> {
    fn load(&self, progress: &dyn Progress) -> Result<Listed> {
        let list = read_list(&self.plan.list_path(self.index), &self.shard.list_sha256)?;
        let entries = list.map(|listed| listed.map(|listed| listed.entry));
        load_listed(self.source, entries, self.shape, progress)
    }
}

/// Creates the shard and its sidecar.
fn publish(
    job: &Job<'_>,
    image: &Path,
    store: &dyn Store,
    report: &PackReport,
    progress: &dyn Progress,
) -> Result<Sidecar> {
    let name = job.plan.name_of(job.shard);
    let describe = |image: &dyn packfs_core::Image| -> Result<Sidecar> {
        let described = Sidecar::new(job.plan, job.shard, ends_of(image)?, digest_of(image, progress)?);
        Ok(Sidecar {
            nodes: report.nodes,
            files: report.files,
            file_bytes: report.bytes_in,
            unreadable: report.skipped.len() as u64,
            ..described
        })
    };
    let mut own = Some(describe(&FileImage::open(image)?)?);
    if !store.put(&shard_object(&name), image, progress)? {
        // Another worker was faster: what it packed counts.
        own = None;
    }
    for _ in 0..TRIES {
        let sidecar = match own.take() {
            Some(sidecar) => sidecar,
            None => match store.open(&shard_object(&name))? {
                Some(image) => describe(&*image)?,
                None => break,
            },
        };
        let (object, text) = (sidecar_object(&name), sidecar.text()?);
        if store.create(&object, &MemoryImage::new(&*object, text), &[], &Silent)?.is_some() {
            return Ok(sidecar);
        }
        let text = store.get(&sidecar_object(&name), super::SIDECAR_LEN_MAX)?;
        let theirs = text.map(|text| Sidecar::parse(&text, job.plan, job.shard));
        if let (Some(Ok(theirs)), Some(image)) = (theirs, store.open(&shard_object(&name))?)
            && difference(&*image, &theirs, true, progress)?.is_none()
        {
            return Ok(theirs);
        }
        store.remove(&sidecar_object(&name))?;
    }
    Err(Error::failed(format!(
        "cannot commit shard {}: other workers change it in {}",
        job.index,
        store.name()
    )))
}

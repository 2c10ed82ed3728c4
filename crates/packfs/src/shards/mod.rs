//! Shards of a directory: plans, packing of single shards, and the way to a merged image.
//!
//! A plan is a folder that machines share. Each packs shards into a store, in any order; one merges
//! what the store has.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # let [source, output] = ["source", "plan"].map(|name| dir.path().join(name));
//! # let image = dir.path().join("all.sqfs");
//! # std::fs::create_dir(&source)?;
//! # std::fs::write(source.join("a"), "example\n")?;
//! # std::fs::write(source.join("b"), "other\n")?;
//! use packfs::Silent;
//! use packfs::shards::*;
//!
//! let recipe = recipe([("format", "squashfs".as_ref()), ("codec", "zstd".as_ref())])?;
//! let (input, shards) = (PlanSource::Walk, Shards::Count(2));
//! let planning =
//!     Planning { source: &source, input, shards, recipe, memory: 64 << 20, output: &output };
//! let plan = plan(planning, &Silent)?;
//! let store = open_store(&dir.path().join("store"), true)?;
//! for index in 0..plan.shards.len() {
//!     pack_shard(&plan, index, &*store, &ShardOptions::default(), &Silent)?;
//! }
//! packfs::merge(shard_images(&plan, &*store, &Silent)?, &image).run()?;
//! assert_eq!(packfs::open(&image)?.read("b")?, b"other\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod merge;
mod pack;
mod recipe;
mod store;
mod verify;

pub use merge::shard_images;
pub use pack::{PackedShard, ShardOptions, ShardOutcome, pack_shard};
pub use packfs_core::Store;
pub use packfs_shards::{
    Cut, DirStore, Engine, ListFormat, Plan, PlanSource, PlannedShard, Planning, Recipe, Shards, Sidecar,
    TOOL_VERSION, Totals,
};
pub use packfs_source::{ChangeKind, ListedChange};
pub use recipe::recipe;
pub use store::open_store;
pub use verify::{ShardState, VerifiedImage, VerifiedShard, verify_merged, verify_shard};

use packfs_core::{ErrorKind, Image, Progress, Result};
use packfs_shards::{digest_of, ends_of};

/// Plans the shards of a directory, after a check of the options that all of them get.
///
/// Errors: as [`packfs_shards::plan`]; `Usage` for options that the format refuses, `Unsupported`
/// for a format whose images cannot be merged.
pub fn plan(planning: Planning<'_>, progress: &dyn Progress) -> Result<Plan> {
    let options = recipe::options(&planning.recipe)?;
    recipe::check(&options)?;
    recipe::check_filters(&options, &planning.input)?;
    packfs_shards::plan(planning, &options.shape, progress)
}

/// Name of a packed shard's object in a store.
fn shard_object(name: &str) -> String {
    format!("{name}.shard")
}

/// Name of a sidecar's object in a store.
fn sidecar_object(name: &str) -> String {
    format!("{name}.json")
}

/// Longest sidecar, in bytes.
const SIDECAR_LEN_MAX: u64 = 64 << 10;

/// State of a shard in a store.
enum Stored {
    /// Nothing, or a shard without a sidecar.
    Missing,
    /// A shard that agrees with its sidecar.
    Committed(Sidecar),
    /// A sidecar, and a shard that is not the one it describes.
    Damaged(String),
}

/// Looks up a shard in a store, and compares its length and both ends, or all of it (`whole`), with
/// the sidecar.
fn stored(
    plan: &Plan,
    shard: &PlannedShard,
    store: &dyn Store,
    whole: bool,
    progress: &dyn Progress,
) -> Result<Stored> {
    let name = plan.name_of(shard);
    let text = match store.get(&sidecar_object(&name), SIDECAR_LEN_MAX) {
        Err(error) if error.kind() != ErrorKind::Corrupt => return Err(error),
        text => text.transpose(),
    };
    let Some(text) = text else { return Ok(Stored::Missing) };
    let sidecar = match text.and_then(|text| Sidecar::parse(&text, plan, shard)) {
        Ok(sidecar) => sidecar,
        Err(error) => return Ok(Stored::Damaged(error.to_string())),
    };
    let Some(image) = store.open(&shard_object(&name))? else {
        return Ok(Stored::Damaged("it has a sidecar, but is missing itself".into()));
    };
    let difference = difference(&*image, &sidecar, whole, progress)?;
    Ok(difference.map_or(Stored::Committed(sidecar), Stored::Damaged))
}

/// Compares a shard with its sidecar.
fn difference(
    image: &dyn Image,
    sidecar: &Sidecar,
    whole: bool,
    progress: &dyn Progress,
) -> Result<Option<String>> {
    let ends = ends_of(image)?;
    if ends.size != sidecar.size {
        return Ok(Some(format!("it has {} bytes, its sidecar says {}", ends.size, sidecar.size)));
    }
    if ends.sha256 != sidecar.ends_sha256 {
        return Ok(Some("its first and last 64 KiB are not those of its sidecar".into()));
    }
    if whole && digest_of(image, progress)? != sidecar.sha256 {
        return Ok(Some("its SHA-256 is not that of its sidecar".into()));
    }
    Ok(None)
}

/// Returns the command that packs a shard, for hints.
fn command(plan: &Plan, index: usize, store: &dyn Store) -> String {
    format!("packfs pack-shard {} {index} --to {}", plan.folder.display(), store.name())
}

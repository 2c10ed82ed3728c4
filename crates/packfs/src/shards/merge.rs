//! Images of all shards, to be merged.

use super::{Stored, command, shard_object, stored};
use packfs_core::{Error, Progress, Result, Store};
use packfs_shards::Plan;
use std::path::PathBuf;

/// Commands that an error names.
const COMMANDS_MAX: usize = 10;

/// Returns the images of all shards of a plan, in its order, for [`crate::merge()`]. Each is
/// compared with its sidecar: its length, and its first and last 64 KiB.
///
/// Errors: `Failed` for shards that are missing, and `Corrupt` for those that are not the ones
/// packed, with the commands that pack them; `Io`.
pub fn shard_images(plan: &Plan, store: &dyn Store, progress: &dyn Progress) -> Result<Vec<PathBuf>> {
    let (mut images, mut missing, mut damaged) = (Vec::new(), Vec::new(), Vec::new());
    for (index, shard) in plan.shards.iter().enumerate() {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        match stored(plan, shard, store, false, progress)? {
            Stored::Committed(_) => images.push(store.place(&shard_object(&plan.name_of(shard)))),
            Stored::Missing => missing.push(index),
            Stored::Damaged(why) => damaged.push((index, why)),
        }
    }
    let count = plan.shards.len();
    if let Some((index, why)) = damaged.first() {
        let fault = format!("{} of {count} shards are damaged: shard {index}: {why}", damaged.len());
        let error = Error::corrupt(format!("store {:?}", store.name()), fault);
        let indexes: Vec<usize> = damaged.iter().map(|(index, _)| *index).collect();
        return Err(with_commands(error, plan, store, &indexes));
    }
    if !missing.is_empty() {
        let (found, store_name) = (missing.len(), store.name());
        let error =
            Error::failed(format!("cannot merge: {found} of {count} shards are not in {store_name:?}"));
        return Err(with_commands(error, plan, store, &missing));
    }
    Ok(images)
}

fn with_commands(error: Error, plan: &Plan, store: &dyn Store, indexes: &[usize]) -> Error {
    let named = indexes.iter().take(COMMANDS_MAX);
    let error = named.fold(error, |error, index| error.hint(command(plan, *index, store)));
    match indexes.len().checked_sub(COMMANDS_MAX) {
        None | Some(0) => error,
        Some(more) => error.hint(format!("and so on, for {more} more")),
    }
}

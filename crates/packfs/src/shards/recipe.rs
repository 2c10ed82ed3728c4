//! Options of a plan as those of packing.

use crate::PackOptions;
use packfs_core::{Error, ErrorKind, Goal, Result, Timestamp};
use packfs_format::{Format, Merging};
use packfs_pack::{Effort, Gain, Order};
use packfs_shards::{Placement, Recipe};
use packfs_source::Shape;

/// Returns the options of packing.
///
/// Errors: `Usage` for values that are none.
pub(super) fn options(recipe: &Recipe) -> Result<PackOptions> {
    let optimize = Goal::named(&recipe.optimize)
        .ok_or_else(|| Error::usage(format!("unknown goal {:?} in the plan", recipe.optimize)))?;
    let min_gain = match recipe.min_gain {
        None => Gain::default(),
        Some(percent) => Gain::percent(percent)
            .ok_or_else(|| Error::usage(format!("min_gain {percent} in the plan, 0 to 49 allowed")))?,
    };
    let order = recipe.order.map(|order| match order {
        Placement::Path => Order::Path,
        Placement::Kind => Order::Kind,
        Placement::Similarity(within) => Order::Similarity { within },
    });
    Ok(PackOptions {
        format: Some(recipe.format.clone()),
        codec: recipe.codec.clone(),
        block_size: recipe.block_size,
        optimize,
        options: recipe.options.clone(),
        order,
        min_gain,
        effort: if recipe.effort_max { Effort::Max } else { Effort::Level },
        keep_going: recipe.keep_going,
        lossy: recipe.lossy,
        for_merging: true,
        ..PackOptions::default()
    })
}

/// Returns the changes that entries get.
pub(super) fn shape(recipe: &Recipe) -> Shape {
    Shape {
        uid: recipe.owner.map(|owner| owner.0),
        gid: recipe.owner.map(|owner| owner.1),
        mtime_max: recipe.mtime_max.map(Timestamp::from_seconds),
        xattr_exclude: recipe.xattr_exclude.clone(),
        keep_going: recipe.keep_going,
        ..Shape::default()
    }
}

/// Returns the format of a recipe.
///
/// Errors: `Usage` for an unknown name.
fn format(recipe: &Recipe) -> Result<&'static dyn Format> {
    packfs_formats::by_name(&recipe.format)
        .ok_or_else(|| Error::usage(format!("unknown format {:?}", recipe.format)))
}

/// Checks that shards can be packed by a recipe, and merged.
///
/// Errors: `Usage` for options that the format refuses, `Unsupported` for a format whose images
/// cannot be merged.
pub(super) fn check(recipe: &Recipe) -> Result<()> {
    let format = format(recipe)?;
    let none = Merging {
        volumes: Vec::new(),
        made_at: 0,
        data_len: 0,
        kernel: None,
        data_files: Vec::new(),
        is_flat: false,
        options: Vec::new(),
    };
    if let Err(error) = format.merger(&none)
        && error.kind() == ErrorKind::Unsupported
    {
        return Err(error);
    }
    let packer = format.packer(&options(recipe)?.settings())?;
    if packer.wraps().is_some() || !packer.layout().data_files().is_empty() {
        let error = Error::usage("images whose data lies in other files cannot be merged");
        return Err(error.hint("packfs merge --devices leaves the data in the shards"));
    }
    Ok(())
}
